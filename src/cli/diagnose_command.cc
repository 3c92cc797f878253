// octet diagnose of the program without LibTorch: see training/diagnose_command.cc.
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/diagnose_flags.h"
#include "cli/other_program.h"

namespace octet::cli {
namespace {

ExitCode look_and_hand_over_diagnosis(const DiagnoseOptions& options) {
  require_file(options.model, "-m");
  throw NeedsTraining("'octet diagnose' runs a network with one quantizer at a time");
}

}  // namespace

Command diagnose_command() {
  return diagnose_command_with(look_and_hand_over_diagnosis);
}

}  // namespace octet::cli
