// Going on as another program.
#pragma once
#include <string>
#include <vector>

namespace octet::cli {

// This process becomes the program `name`, which lies in the same folder as this one, with these arguments. Does not
// return. UserError if there is no such program, or it cannot be started.
[[noreturn]] void become_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace octet::cli
