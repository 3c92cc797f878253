// The command that this process does, for what it writes about its work.
#pragma once
#include <string>
#include <vector>

namespace octet {

// Without the program's name. Called once, before any thread starts.
void remember_command_line(const std::vector<std::string>& arguments);

// As one would type it in a shell, "octet train -e 'my spec.yaml'"; empty before there is one.
const std::string& command_line();

}  // namespace octet
