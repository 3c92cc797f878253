// octet man: the manual pages, from the table of commands.
#include <CLI/App.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/files.h"
#include "base/log.h"
#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/man_page.h"
#include "schema/schema.h"

namespace octet::cli {
namespace {

struct ManOptions {
  std::vector<std::string> command;
  std::string folder;
};

void write_all(const std::vector<CommandText>& commands, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "octet.1", man_page_of_program(commands, OCTET_VERSION));
  for (const CommandText& command : commands)
    write_file_atomically(folder / (man_page_name(command) + ".1"), man_page(command, OCTET_VERSION));
  log_info("wrote ", commands.size() + 1, " manual pages to ", folder.string());
}

ExitCode run_man(const ManOptions& options) {
  const std::vector<CommandText> commands = all_command_texts();
  if (!options.folder.empty()) {
    write_all(commands, options.folder);
    return ExitCode::kDone;
  }
  const std::string name = schema::join(options.command, " ");
  if (name.empty()) {
    std::cout << man_page_of_program(commands, OCTET_VERSION);
    return ExitCode::kDone;
  }
  std::vector<std::string> names;
  for (const CommandText& command : commands) {
    names.push_back(command.name);
    if (command.name != name) continue;
    std::cout << man_page(command, OCTET_VERSION);
    return ExitCode::kDone;
  }
  const std::string hint = did_you_mean(name, names);
  fail_usage("man: there is no command '", name, "'", hint.empty() ? "; see 'octet --help'" : hint);
}

}  // namespace

Command man_command() {
  return {.name = "man",
          .summary = "Print a manual page",
          .details = "Prints the manual page of octet or of one of its commands, for man(1), or writes all of them.",
          .examples = {"octet man bench | man -l -", "octet man --folder ~/.local/share/man/man1"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<ManOptions>();
            app.add_option("COMMAND", options->command, "The command; without: the page of octet")->type_name("");
            app.add_option("--folder", options->folder, "Write all pages to this folder")->type_name("FOLDER");
            return [options] { return run_man(*options); };
          }};
}

}  // namespace octet::cli
