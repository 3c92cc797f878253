// What a subcommand is. Each lives in a file of its own, <name>_command.cc, and is listed in commands.cc.
//
//   Command models_command() {
//     return {.name = "models", .summary = "...", .details = "...", .examples = {"octet models"},
//             .define = [](CLI::App& app) -> Run {
//               auto options = std::make_shared<Options>();
//               app.add_option("--name", options->name, "...");
//               return [options] { return run(*options); };
//             }};
//   }
//
// Conventions: results meant for a program or a pipe go to standard output (by std::cout, which makes names printable,
// not by printf), everything else to standard error through base/log.h; mistakes are UserErrors and become one line and
// an exit code in program.cc; outputs are never overwritten without --force; flags that several commands have come from
// flags.h, so that they mean the same everywhere.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace octet::cli {

using Run = std::function<ExitCode()>;

struct Command {
  std::string name;
  std::string summary;                   // one line, for the list of commands
  std::string details;                   // what it reads, does and writes; for its --help
  std::vector<std::string> examples;     // whole lines that can be copied
  std::function<Run(CLI::App&)> define;  // adds the flags; what it returns is called when they are parsed
  // TAO's long flags with a single dash and what they are here: {"-pth", "--pruning_threshold"}.
  std::map<std::string, std::string> single_dash = {};
  std::string unavailable;  // not empty: this build lacks the command, and why
  // Not empty: the program beside this one that has what this one lacks of the command: what the flags `only_there` ask
  // for, and what throws NeedsTraining.
  std::string program;
  std::vector<Command> kinds;  // not empty: the first argument names one of these, which is then the command
  std::vector<std::string> only_there = {};
};

}  // namespace octet::cli
