// The processes of one training on this machine: starts them, watches them, starts them anew where one was lost.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/world.h"

namespace octet::app {

struct WorkersOptions {
  LocalWorkers workers;
  int64_t max_restarts = 0;
  // How long the others may take to notice that one was lost and to say so, before they are ended.
  std::chrono::milliseconds grace{5000};
};

// Runs this program with the arguments that it was given, once for each worker, which finds its place by world_of().
// SIGINT, SIGTERM and SIGUSR1 go to all workers, which stop together; a second one ends them. Workers that were lost
// (by a signal, or with exit code 1) are started again, all of them, up to max_restarts times; usage errors are not
// mended so. The exit code of the first one that failed; UserError that names it where it was killed. No worker
// outlives the call, nor this process however it ends.
ExitCode run_workers(const WorkersOptions& options);

}  // namespace octet::app
