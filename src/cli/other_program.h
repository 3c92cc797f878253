// Going on as another program, or starting one.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"

namespace octet::cli {

// Thrown by a command whose work turns out to take LibTorch, before it has written anything: the program with LibTorch
// then does the command from its beginning, or, where that is not there, this is the error.
class NeedsTraining : public UserError {
 public:
  explicit NeedsTraining(const std::string& why) : UserError(why, ExitCode::kUsage) {}
};

// Whether the program `name` lies in the same folder as this one.
bool has_program(const std::string& name);

// This process becomes the program `name`, which lies in the same folder as this one, with these arguments. Does not
// return. UserError if there is no such program, or it cannot be started.
[[noreturn]] void become_program(const std::string& name, const std::vector<std::string>& arguments);

// Runs a command of this program and waits for it; it has the same standard streams. Its exit code, or 128 and the
// number of the signal that ended it.
int run_octet(const std::vector<std::string>& arguments);

}  // namespace octet::cli
