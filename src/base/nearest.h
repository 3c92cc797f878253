// "Did you mean ...?" for every name a person may mistype.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace octet {

// Number of insertions, deletions, substitutions and swaps of neighbors that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

// The candidate most like `name` (letter case aside), or an empty string when none is near enough to be meant.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'X'?", or an empty string.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace octet
