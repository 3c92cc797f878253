#include "cli/commands.h"

namespace octet::cli {
namespace {

// A command whose work takes LibTorch: of the program that has it, or of none.
Command with_training(Command command) {
#ifdef OCTET_TRAINING_PROGRAM
  command.program = OCTET_TRAINING_PROGRAM;
#elif !defined(OCTET_WITH_TRAINING)
  command.unavailable = "this build has no training; configure it with -DOCTET_TRAIN=ON";
#endif
  return command;
}

// A command that can do more with LibTorch than without.
Command better_with_training(Command command) {
#ifdef OCTET_TRAINING_PROGRAM
  command.program = OCTET_TRAINING_PROGRAM;
#endif
  return command;
}

std::vector<Command> make_commands() {
  std::vector<Command> commands;
  commands.push_back(with_training(train_command()));
  commands.push_back(better_with_training(calibrate_command()));
  commands.push_back(better_with_training(quantize_command()));
  commands.push_back(with_training(diagnose_command()));
  commands.push_back(better_with_training(verify_command()));
  commands.push_back(better_with_training(evaluate_command()));
  commands.push_back(better_with_training(infer_command()));
  commands.push_back(prune_command());
  commands.push_back(better_with_training(export_command()));
  commands.push_back(compile_command());
  commands.push_back(compare_command());
  commands.push_back(bench_command());
  commands.push_back(convert_command());
  commands.push_back(inspect_command());
  commands.push_back(lint_command());
  commands.push_back(report_command());
  commands.push_back(study_command());
  commands.push_back(models_command());
  commands.push_back(passes_command());
  commands.push_back(sensitivity_command());
  commands.push_back(scenes_command());
  commands.push_back(spec_command());
  commands.push_back(completions_command());
  commands.push_back(man_command());
  return commands;
}

}  // namespace

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = make_commands();
  return commands;
}

}  // namespace octet::cli
