#include "cli/commands.h"

#include "cli/other_program.h"

namespace octet::cli {
namespace {

#ifndef OCTET_WITH_TRAINING
// A command that needs LibTorch: of the program that has it, or of none.
Command with_training(const std::string& name, const std::string& summary) {
  Command command;
  command.name = name;
  command.summary = summary;
#ifdef OCTET_TRAINING_PROGRAM
  command.program = OCTET_TRAINING_PROGRAM;
#else
  command.unavailable = "this build has no training; configure it with -DOCTET_TRAIN=ON";
#endif
  return command;
}
#endif

// A command that can do more with LibTorch than without.
Command better_with_training(Command command) {
#ifdef OCTET_TRAINING_PROGRAM
  command.program = OCTET_TRAINING_PROGRAM;
#endif
  return command;
}

// A command that describes the commands: where the program that has all of them is installed, by that.
Command all_of_it(Command command) {
#ifdef OCTET_TRAINING_PROGRAM
  if (has_program(OCTET_TRAINING_PROGRAM)) {
    command.program = OCTET_TRAINING_PROGRAM;
    command.define = nullptr;
  }
#endif
  return command;
}

std::vector<Command> make_commands() {
  std::vector<Command> commands;
#ifdef OCTET_WITH_TRAINING
  commands.push_back(train_command());
#else
  commands.push_back(with_training("train", "Train a network, or fine-tune it quantization-aware"));
#endif
  commands.push_back(better_with_training(calibrate_command()));
  commands.push_back(better_with_training(quantize_command()));
#ifdef OCTET_WITH_TRAINING
  commands.push_back(diagnose_command());
#else
  commands.push_back(
      with_training("diagnose", "Rank the quantizers of a model by what each costs, and say what may help"));
#endif
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
  commands.push_back(all_of_it(completions_command()));
  commands.push_back(all_of_it(man_command()));
  return commands;
}

}  // namespace

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = make_commands();
  return commands;
}

}  // namespace octet::cli
