// octet completions: what makes a shell complete octet's command lines.
#include <CLI/App.hpp>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/completion_scripts.h"
#include "cli/flags.h"

namespace octet::cli {

Command completions_command() {
  return {.name = "completions",
          .summary = "Print the completions of a shell",
          .details =
              "Prints a script that completes commands, options and values. The packages install them for all users; "
              "without a package, source it where your shell starts, or put it where the shell looks.",
          .examples = {"source <(octet completions bash)", "octet completions zsh > ~/.zsh/completions/_octet",
                       "octet completions fish > ~/.config/fish/completions/octet.fish"},
          .define = [](CLI::App& app) -> Run {
            auto shell = std::make_shared<std::string>();
            limit_to(app.add_option("SHELL", *shell, "The shell")->required(), "bash|zsh|fish");
            return [shell] {
              const std::vector<CommandText> commands = all_command_texts();
              std::cout << (*shell == "bash"  ? bash_completions(commands)
                            : *shell == "zsh" ? zsh_completions(commands)
                                              : fish_completions(commands));
              return ExitCode::kDone;
            };
          }};
}

}  // namespace octet::cli
