// The program around the commands: finds the one that is asked for, parses its flags, runs it, and turns errors into
// one line on standard error and an exit code.
#pragma once
#include <string>
#include <vector>

namespace octet::cli {

// `arguments` without the program's name. Never throws. Returns the exit code: 0 done, 1 the work failed, 2 usage or
// spec error, 3 a check did not hold.
int run_program(const std::vector<std::string>& arguments);

}  // namespace octet::cli
