// Ranks that are processes: a process group of c10d, Gloo over TCP. Tensors of a GPU go through the main memory.
#pragma once
#include <chrono>
#include <memory>

#include "base/world.h"
#include "train/communicator.h"

namespace octet::train {

// Meets the other processes of `world`, which all call it. `timeout`: how long one of them waits for another, here and
// in every later call. UserError, with what to do, when they do not come together.
std::unique_ptr<Communicator> join_process_group(const World& world, std::chrono::seconds timeout);

}  // namespace octet::train
