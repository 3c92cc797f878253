// The parser of a command's line: its own flags, those that all commands have, and the text of --help.
#pragma once
#include <memory>
#include <string>

#include "cli/command.h"

namespace octet::cli {

struct CommandApp {
  // `whole_name`: "octet convert spec". The command must be one that this program has.
  CommandApp(const Command& command, const std::string& whole_name);
  ~CommandApp();
  CommandApp(const CommandApp&) = delete;
  CommandApp& operator=(const CommandApp&) = delete;

  std::unique_ptr<CLI::App> parser;
  bool verbose = false, quiet = false;  // once it has parsed
  Run run;                              // to be called then
};

// The details of a command with lines that a terminal has room for.
std::string wrapped_details(const Command& command);

}  // namespace octet::cli
