// How deep a JSON text is nested, before anybody parses it.
#pragma once
#include <cstdint>
#include <string_view>

namespace octet::engine {

// The most objects and lists of `json` that lie within each other: 0 for a number, 1 for [1, 2], 2 for {"a": []}. Of a
// text that is not JSON some number, no less than what a parser opens until it meets the fault. A parser with a
// callback could count, too, but nlohmann::json searches the whole list at the end of each object in it then.
int64_t json_depth(std::string_view json);

}  // namespace octet::engine
