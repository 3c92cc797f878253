// The table of subcommands.
#pragma once
#include <vector>

#include "cli/command.h"

namespace octet::cli {

// In the order in which they are listed to people.
const std::vector<Command>& all_commands();

Command inspect_command();
Command models_command();
Command spec_command();

}  // namespace octet::cli
