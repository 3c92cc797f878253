// Manual pages of octet, in the macros of man(7).
#pragma once
#include <string>
#include <vector>

#include "cli/command_text.h"

namespace octet::cli {

// "octet", "octet-bench", "octet-convert-spec"; the ending of the file is ".1".
std::string man_page_name(const CommandText& command);

// octet(1): the commands, exit codes, environment and files.
std::string man_page_of_program(const std::vector<CommandText>& commands, const std::string& version);
std::string man_page(const CommandText& command, const std::string& version);

}  // namespace octet::cli
