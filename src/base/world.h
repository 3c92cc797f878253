// Which process of how many this one is, as those who start several say it in the environment: torchrun, Kubernetes'
// PyTorchJob and Trainer, Slurm's srun, MPI's mpirun, or octet's own launcher.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace octet {

// The value of an environment variable, nullptr where it is not set: std::getenv, or that of a test.
using Environment = std::function<const char*(const char*)>;

inline constexpr int kDefaultMasterPort = 29500;  // torchrun's

struct World {
  int rank = 0, size = 1;              // of all processes
  int local_rank = 0, local_size = 1;  // of those on this machine
  std::string master = "127.0.0.1";    // where rank 0 is found
  int port = kDefaultMasterPort;
  bool served = false;     // somebody else serves the port already: torchrun's agent
  int listening = -1;      // a descriptor of rank 0 on which the port is open already; -1: none
  int restarts = 0;        // how often this world was started again
  std::string started_by;  // for messages; empty: nobody, this process is alone
  bool by_octet = false;   // by octet's launcher, which tells of failures itself
};

// What one machine's launcher is asked for: `workers` processes here, of `nodes` machines with as many each.
struct LocalWorkers {
  int workers = 1;
  int nodes = 1, node = 0;
  std::string master = "127.0.0.1";
  int port = kDefaultMasterPort;
  std::string asked_by;  // "--gpus", "PET_NPROC_PER_NODE"
};

// The world that this process was started into; a world of one where nothing says otherwise. UserError (exit 2) where
// the variables contradict each other or are no numbers.
World world_of(const Environment& environment);

// The workers that Kubernetes asks for by PET_NNODES, PET_NPROC_PER_NODE and PET_NODE_RANK, where a program is started
// without torchrun. `devices`: what "gpu" and "auto" mean. Nothing where they ask for one process in all.
std::optional<LocalWorkers> workers_of(const Environment& environment, int devices);

// The first host of Slurm's list: "node[03-05,9],other" is node03. UserError (exit 2) for an empty one.
std::string first_host(const std::string& nodelist);

}  // namespace octet
