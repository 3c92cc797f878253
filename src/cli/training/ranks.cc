#include "cli/training/ranks.h"

#include <cstdlib>

#include "base/cpu_limits.h"
#include "base/log.h"
#include "base/worker_process.h"
#include "train/process_group.h"
#include "train/torch_runtime.h"

namespace octet::cli {
namespace {

Environment process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

void require_gpus(int64_t gpus, const std::string& flag) {
  const int there = train::cuda_devices();
  if (there == 0)
    fail_usage(flag, " ", gpus, ": no GPU can be used: ", train::cuda_problem(),
               "; --workers trains with several processes on CPUs");
  if (gpus > there)
    fail_usage(flag, " ", gpus, ": this machine has ", there, there == 1 ? " CUDA device" : " CUDA devices",
               "; the most is --gpus ", there);
}

}  // namespace

std::optional<app::WorkersOptions> workers_to_start(const WorkerFlags& flags, int64_t gpus) {
  const Environment environment = process_environment();
  const World world = world_of(environment);
  const int64_t asked = std::max(flags.workers, gpus), here = std::max<int64_t>(asked, 1);
  const char* const flag = gpus > 0 ? "--gpus" : "--workers";
  if (flags.workers > 0 && gpus > 0) fail_usage("--gpus and --workers: give one of them, GPUs or processes on CPUs");
  if (flags.node >= flags.nodes)
    fail_usage("--node_rank ", flags.node, ": there are --nnodes ", flags.nodes, ", counted from 0");
  if (world.size > 1) {
    if (!world.by_octet && asked > 1 && asked != world.local_size)
      fail_usage(flag, " ", asked, ": ", world.started_by, " has started ", world.local_size,
                 " processes on this machine already; leave the flag out");
    return std::nullopt;
  }
  app::WorkersOptions out{.max_restarts = flags.max_restarts};
  if (here * flags.nodes > 1) {
    out.workers = {.workers = static_cast<int>(here),
                   .nodes = static_cast<int>(flags.nodes),
                   .node = static_cast<int>(flags.node),
                   .master = flags.master,
                   .port = static_cast<int>(flags.port),
                   .asked_by = flag};
  } else if (flags.max_restarts > 0 && !world.by_octet) {
    out.workers.asked_by = "--max-restarts";  // one worker, which is watched
  } else if (const std::optional<LocalWorkers> asked_by_kubernetes = workers_of(environment, train::cuda_devices())) {
    out.workers = *asked_by_kubernetes;
  } else {
    return std::nullopt;
  }
  if (gpus > 0) require_gpus(gpus, flag);
  if (gpus == 0 && out.workers.workers > available_cpus())
    log_warning(out.workers.workers, " workers share ", available_cpus(), " CPUs: they wait for each other");
  return out;
}

Ranks join_ranks(const WorkerFlags& flags) {
  Ranks out{.world = world_of(process_environment()), .group = nullptr};
  if (out.world.size == 1) return out;
  share_cpus(out.world.local_size);
  set_log_prefix(str("rank ", out.world.rank, ": "));
  if (out.first())
    log_info(out.world.size, " workers, started by ", out.world.started_by);
  else if (is_logged(LogLevel::kInfo))
    set_log_level(LogLevel::kWarning);
  train::initialize_torch();
  out.group = train::join_process_group(out.world, std::chrono::seconds(flags.timeout));
  return out;
}

std::string own_device(const std::string& device, const World& world) {
  return world.size > 1 && device == "cuda" ? str("cuda:", world.local_rank) : device;
}

}  // namespace octet::cli
