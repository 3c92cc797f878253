// What a count says of a share: 998 of 1,000 is not yet 99.8 %.
#pragma once
#include <cstdint>

namespace octet::metrics {

struct Interval {
  double low = 0, high = 1;
};

// Wilson's interval of 95 % for the share that `hits` of `count` stands for; [0, 1] of nothing. 0 <= hits <= count.
Interval share_interval(int64_t hits, int64_t count);

}  // namespace octet::metrics
