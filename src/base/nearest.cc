#include "base/nearest.h"

#include <algorithm>
#include <cctype>

namespace octet {
namespace {

// Names longer than this are not typing mistakes; it also bounds the quadratic work.
constexpr size_t kLongestName = 64;

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > kLongestName) return "";
  const std::string wanted = lower_case(name);
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    int distance = edit_distance(wanted, lower_case(candidate));
    // A whole word left out or added ("batch_size" for "batch_size_per_gpu") is a likely slip too.
    const size_t shorter = std::min(name.size(), candidate.size());
    if (shorter >= 4 && lower_case(candidate).substr(0, shorter) == wanted.substr(0, shorter))
      distance = std::min(distance, 2);
    if (distance > std::max(1, static_cast<int>(std::max(wanted.size(), candidate.size())) / 3)) continue;
    if (best.empty() || distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string best = nearest_name(name, candidates);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

}  // namespace octet
