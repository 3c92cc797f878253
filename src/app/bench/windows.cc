#include "app/bench/windows.h"

#include <algorithm>
#include <cmath>

namespace octet::app {
namespace {

std::vector<double> all_of(const std::vector<std::vector<double>>& windows) {
  std::vector<double> all;
  for (const std::vector<double>& window : windows) all.insert(all.end(), window.begin(), window.end());
  return all;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double WindowTimes::min() const {
  double least = windows.front().front();
  for (const std::vector<double>& window : windows)
    least = std::min(least, *std::min_element(window.begin(), window.end()));
  return least;
}

double WindowTimes::median() const {
  return median_of(all_of(windows));
}

double WindowTimes::quantile(double share) const {
  std::vector<double> all = all_of(windows);
  if (all.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(share * static_cast<double>(all.size())));
  const auto place = all.begin() + std::clamp<std::ptrdiff_t>(rank - 1, 0, std::ssize(all) - 1);
  std::nth_element(all.begin(), place, all.end());
  return *place;
}

std::vector<double> WindowTimes::window_medians() const {
  std::vector<double> out;
  for (const std::vector<double>& window : windows) out.push_back(median_of(window));
  return out;
}

TimesAsLong times_as_long(const WindowTimes& other, const WindowTimes& base) {
  TimesAsLong ratio;
  const std::vector<double> above = other.window_medians(), below = base.window_medians();
  for (size_t i = 0; i < above.size(); ++i) ratio.per_window.push_back(above[i] / below[i]);
  ratio.median = median_of(ratio.per_window);
  ratio.min = *std::min_element(ratio.per_window.begin(), ratio.per_window.end());
  ratio.max = *std::max_element(ratio.per_window.begin(), ratio.per_window.end());
  return ratio;
}

}  // namespace octet::app
