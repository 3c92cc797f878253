// Going on as another program, or starting one.
#pragma once
#include <string>
#include <vector>

namespace octet::cli {

// This process becomes the program `name`, which lies in the same folder as this one, with these arguments. Does not
// return. UserError if there is no such program, or it cannot be started.
[[noreturn]] void become_program(const std::string& name, const std::vector<std::string>& arguments);

// Whether it could.
bool has_program(const std::string& name);

// Runs a command of this program and waits for it; it has the same standard streams. Its exit code, or 128 and the
// number of the signal that ended it.
int run_octet(const std::vector<std::string>& arguments);

}  // namespace octet::cli
