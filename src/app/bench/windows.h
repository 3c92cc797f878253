// Times of contenders that took turns: every contender runs in every window, so that a change of clock or a noisy
// neighbor hits all of them, and ratios are taken within a window.
#pragma once
#include <string>
#include <vector>

namespace octet::app {

// The median; 0 without values.
double median_of(std::vector<double> values);

// Milliseconds of one contender, a list for each window.
struct WindowTimes {
  std::vector<std::vector<double>> windows;

  double min() const;
  double median() const;  // of all runs
  // Of all runs: the least time that a share of them (0 to 1) does not exceed; 1 is the largest.
  double quantile(double share) const;
  std::vector<double> window_medians() const;
};

// How many times as long as `base` the other takes, from the medians of each window.
struct TimesAsLong {
  std::vector<double> per_window;
  double median = 0, min = 0, max = 0;  // of the windows
};
TimesAsLong times_as_long(const WindowTimes& other, const WindowTimes& base);

}  // namespace octet::app
