#include "metrics/share_interval.h"

#include <algorithm>
#include <cmath>

namespace octet::metrics {

// Wilson, Probable inference, the law of succession, and statistical inference, 1927: unlike the usual mean and
// deviation it holds where all or nearly all are hits.
Interval share_interval(int64_t hits, int64_t count) {
  if (count <= 0) return {};
  constexpr double z = 1.959964;  // 97.5 % of the normal distribution lie below
  const auto n = static_cast<double>(count);
  const double share = static_cast<double>(hits) / n, scale = 1 + z * z / n;
  const double center = (share + z * z / (2 * n)) / scale;
  const double half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale;
  return {std::max(0.0, center - half), hits == count ? 1.0 : std::min(1.0, center + half)};
}

}  // namespace octet::metrics
