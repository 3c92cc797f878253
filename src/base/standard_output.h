// Standard output that holds one result and nothing else (`--json -`).
#pragma once
#include <string_view>

namespace octet {

// From here on whatever is printed, by this program, its libraries or programs that it starts, goes to standard error;
// write_result() alone reaches what standard output was. Once for a process; again it does nothing.
void reserve_standard_output();

// Standard output is what it was: for a process that goes on as another program.
void restore_standard_output();

// All of `text` to the standard output. UserError where it cannot be written.
void write_result(std::string_view text);

}  // namespace octet
