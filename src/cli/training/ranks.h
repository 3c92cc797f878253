// Training by several processes: those that this one starts, and its own place among them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/workers.h"
#include "base/world.h"
#include "cli/train_flags.h"
#include "train/communicator.h"

namespace octet::cli {

// The workers that this process is to start, by the flags (`gpus`: --gpus, 0: not given) or by Kubernetes' variables;
// nothing where it is itself the one that works. UserError (exit 2) where there are fewer GPUs, or where another
// launcher has started another number of processes.
std::optional<app::WorkersOptions> workers_to_start(const WorkerFlags& flags, int64_t gpus);

// This process among those that were started. It has met the others.
struct Ranks {
  World world;
  std::unique_ptr<train::Communicator> group;  // null: alone
  train::Communicator& communicator() const { return group ? *group : train::single_process(); }
  bool first() const { return world.rank == 0; }
};
// Where there are others, this one takes its part of the CPUs, and all but the first only warn.
Ranks join_ranks(const WorkerFlags& flags);

// The device of this rank, where the experiment says `device`: of several GPUs its own.
std::string own_device(const std::string& device, const World& world);

}  // namespace octet::cli
