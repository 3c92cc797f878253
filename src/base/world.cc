#include "base/world.h"

#include <algorithm>
#include <charconv>

#include "base/cpu_limits.h"
#include "base/error.h"

namespace octet {
namespace {

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  bool has(const char* name) const { return environment_(name) != nullptr; }
  std::string text(const char* name, const std::string& otherwise = "") const {
    const char* value = environment_(name);
    return value ? value : otherwise;
  }
  int number(const char* name, int low, int high) const {
    const std::string value = text(name);
    int out = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error != std::errc() || end != value.data() + value.size() || out < low || out > high)
      fail_usage("the environment variable ", name, " is '", value, "', expected a whole number from ", low, " to ",
                 high);
    return out;
  }
  int number(const char* name, int low, int high, int otherwise) const {
    return has(name) ? number(name, low, high) : otherwise;
  }

 private:
  const Environment& environment_;
};

constexpr int kMostProcesses = 1 << 20;

int port_of(const Variables& variables, int otherwise) {
  return variables.number("MASTER_PORT", 1, 65535, otherwise);
}

// Ranks and sizes by variables of these names; those on this machine may be missing.
World numbered(const Variables& v, const char* rank, const char* size, const char* local_rank,
               const char* local_size = nullptr) {
  World out;
  out.size = v.number(size, 1, kMostProcesses);
  out.rank = v.number(rank, 0, out.size - 1);
  if (local_size) out.local_size = v.number(local_size, 1, out.size, 1);
  out.local_rank = v.number(local_rank, 0, out.local_size > 1 ? out.local_size - 1 : out.size - 1, 0);
  out.port = port_of(v, kDefaultMasterPort);
  return out;
}

// Who starts a process for each rank, and names rank 0's machine, or else has all on this one.
World with_master(World world, const Variables& v, const char* local_size) {
  if (v.has("MASTER_ADDR")) {
    world.master = v.text("MASTER_ADDR");
  } else if (world.size > world.local_size) {
    fail_usage(world.started_by, " started ", world.size, " processes, and nothing names the machine of rank 0; set ",
               "MASTER_ADDR (and MASTER_PORT)",
               v.has(local_size) ? "" : str(", or ", local_size, " where all are on this machine"));
  }
  return world;
}

World by_torchrun(const Variables& v) {
  World out = numbered(v, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  out.by_octet = v.has("OCTET_WORKER");
  out.started_by = out.by_octet ? "octet" : v.has("TORCHELASTIC_RUN_ID") ? "torchrun" : "the environment";
  if (out.size > 1 && !v.has("MASTER_ADDR"))
    fail_usage("WORLD_SIZE is ", out.size, " and MASTER_ADDR is not set; set it to the machine of rank 0");
  out.master = v.text("MASTER_ADDR", "127.0.0.1");
  // Its launcher serves the port, and rank 0 is a client as all others; "False": nobody does.
  out.served = v.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  out.listening = v.number("OCTET_LISTENING", 0, 1 << 20, -1);
  out.restarts = v.number("TORCHELASTIC_RESTART_COUNT", 0, 1 << 20, 0);
  return out;
}

World by_slurm(const Variables& v) {
  World out = numbered(v, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID");
  out.started_by = "Slurm";
  // "2(x3),1": as many on each node, from the first one on.
  const std::string per_node = v.text("SLURM_STEP_TASKS_PER_NODE", v.text("SLURM_TASKS_PER_NODE"));
  const int nodes = v.number("SLURM_STEP_NUM_NODES", 1, kMostProcesses, v.number("SLURM_NNODES", 1, kMostProcesses, 1));
  int on_first = 0;
  std::from_chars(per_node.data(), per_node.data() + per_node.size(), on_first);
  out.local_size = nodes == 1 ? out.size : std::max(on_first, 1);
  out.master = v.has("MASTER_ADDR") ? v.text("MASTER_ADDR")
               : nodes == 1         ? "127.0.0.1"
                                    : first_host(v.text("SLURM_STEP_NODELIST", v.text("SLURM_JOB_NODELIST")));
  // Jobs that share a node must not share a port.
  const std::string job = v.text("SLURM_JOB_ID", "0");
  int last_digits = 0;
  const std::string tail = job.size() > 4 ? job.substr(job.size() - 4) : job;
  std::from_chars(tail.data(), tail.data() + tail.size(), last_digits);
  out.port = port_of(v, 15000 + last_digits);
  out.restarts = v.number("SLURM_RESTART_COUNT", 0, 1 << 20, 0);
  return out;
}

World by_open_mpi(const Variables& v) {
  World out = numbered(v, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                       "OMPI_COMM_WORLD_LOCAL_SIZE");
  out.started_by = "mpirun";
  return with_master(out, v, "OMPI_COMM_WORLD_LOCAL_SIZE");
}

World by_mpich(const Variables& v) {
  World out = numbered(v, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
  out.started_by = "mpiexec";
  return with_master(out, v, "MPI_LOCALNRANKS");
}

bool asks_for_workers(const Variables& v) {
  return v.has("PET_NNODES") || v.has("PET_NPROC_PER_NODE");
}

}  // namespace

World world_of(const Environment& environment) {
  const Variables v(environment);
  const bool ranked = v.has("RANK") && v.has("WORLD_SIZE");
  if (ranked && v.has("LOCAL_RANK")) return by_torchrun(v);
  if (asks_for_workers(v)) return {};  // RANK is that of the pod
  // Before Slurm, of whose steps mpirun makes one a node.
  if (v.has("OMPI_COMM_WORLD_SIZE") && v.number("OMPI_COMM_WORLD_SIZE", 1, kMostProcesses) > 1) return by_open_mpi(v);
  // Set by srun alone: in the batch script itself there is one process, whatever SLURM_NTASKS says.
  if (v.has("SLURM_STEP_NUM_TASKS") && v.number("SLURM_STEP_NUM_TASKS", 1, kMostProcesses) > 1) return by_slurm(v);
  if (v.has("PMI_SIZE") && v.number("PMI_SIZE", 1, kMostProcesses) > 1) return by_mpich(v);
  if (ranked && v.number("WORLD_SIZE", 1, kMostProcesses) > 1) return by_torchrun(v);
  return {};
}

std::optional<LocalWorkers> workers_of(const Environment& environment, int devices) {
  const Variables v(environment);
  if (v.has("RANK") && v.has("WORLD_SIZE") && v.has("LOCAL_RANK")) return std::nullopt;
  if (!asks_for_workers(v)) return std::nullopt;
  LocalWorkers out{.asked_by = "PET_NPROC_PER_NODE"};
  const std::string nodes = v.text("PET_NNODES", "1");
  if (nodes.find(':') != std::string::npos)
    fail_usage("PET_NNODES is '", nodes,
               "': a world that grows and shrinks needs torchrun --no-python octet train ...");
  out.nodes = v.number("PET_NNODES", 1, kMostProcesses, 1);
  const std::string processes = v.text("PET_NPROC_PER_NODE", "1");
  out.workers = (processes == "gpu" || processes == "auto") && devices > 0 ? devices
                : processes == "auto"                                      ? available_cpus()
                : processes == "cpu"                                       ? available_cpus()
                                                                           : v.number("PET_NPROC_PER_NODE", 1, 1024, 1);
  out.node = v.number("PET_NODE_RANK", 0, out.nodes - 1, v.number("RANK", 0, out.nodes - 1, 0));
  out.master = v.text("PET_MASTER_ADDR", v.text("MASTER_ADDR", "127.0.0.1"));
  out.port = v.number("PET_MASTER_PORT", 1, 65535, port_of(v, kDefaultMasterPort));
  if (out.workers * out.nodes == 1) return std::nullopt;
  return out;
}

std::string first_host(const std::string& nodelist) {
  const size_t bracket = nodelist.find('['), comma = nodelist.find(',');
  std::string host = nodelist.substr(0, std::min(bracket, comma));
  if (bracket != std::string::npos && bracket < comma)
    host += nodelist.substr(bracket + 1, nodelist.find_first_of(",-]", bracket) - bracket - 1);
  if (host.empty()) fail_usage("Slurm's list of nodes is empty; set MASTER_ADDR to the machine of rank 0");
  return host;
}

}  // namespace octet
