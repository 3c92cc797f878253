// octet train as it is called: its flags and its help, which need no LibTorch, in front of the work, which does.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "base/world.h"
#include "cli/command.h"
#include "cli/flags.h"

namespace octet::cli {

// Training by several processes (docs/distributed.md).
struct WorkerFlags {
  int64_t workers = 0;  // 0: not given
  int64_t nodes = 1, node = 0;
  std::string master = "127.0.0.1";
  int64_t port = kDefaultMasterPort;
  int64_t max_restarts = 0;
  int64_t timeout = 600;  // seconds
};

struct TrainOptions {
  SpecFlags spec;
  WorkerFlags workers;
  std::string results, model, name = "model", stage;
  int64_t epochs = 0;  // 0: not given
  bool force = false, explain = false;
};

// The command, with what is to be done once its flags are read.
Command train_command_with(std::function<ExitCode(TrainOptions&)> run);

// UserError (exit 2) where neither an experiment nor a folder is given.
void require_something_to_train(const TrainOptions& options);

}  // namespace octet::cli
