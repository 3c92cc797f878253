// octet train of the program without LibTorch: mistakes in flags and experiment are answered at once, all else is for
// training/train_command.cc, which takes half a second to start.
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/world.h"
#include "cli/commands.h"
#include "cli/other_program.h"
#include "cli/train_flags.h"

namespace octet::cli {
namespace {

ExitCode look_and_hand_over(const TrainOptions& options) {
  require_something_to_train(options);
  // A pipe can be read but once, a folder is looked at by who trains on it, and of several ranks the first one tells.
  const bool alone = world_of([](const char* name) -> const char* { return std::getenv(name); }).size == 1;
  std::error_code ignored;
  const std::filesystem::file_status file = std::filesystem::status(options.spec.path, ignored);
  if (alone && options.spec.folder.empty() && (is_regular_file(file) || !exists(file))) {
    set_log_level(LogLevel::kError);  // what else is to be said of it, the training says
    (void)options.spec.load();
  }
  throw NeedsTraining("'octet train' learns weights");
}

}  // namespace

Command train_command() {
  return train_command_with(look_and_hand_over);
}

}  // namespace octet::cli
