#include "app/bench/busyness.h"

#include <cstdio>

#include "base/error.h"
#include "report/format.h"

namespace octet::app {
namespace {

// On a machine of its own the threads of an inference wait for less than one percent of the time.
constexpr double kMostPercent = 5;
constexpr double kMostLoad = 0.5;  // per CPU

}  // namespace

Busyness::Busyness(std::optional<double> load_before, double turned, double waited) : load_before_(load_before) {
  if (turned > 0) waited_percent_ = 100 * waited / turned;
}

// The load may be a thing of the past, so it decides only where the system says nothing better.
bool Busyness::too_busy(int cpus) const {
  if (waited_percent_) return *waited_percent_ > kMostPercent;
  return load_before_ && *load_before_ > kMostLoad * cpus;
}

std::string Busyness::text() const {
  const std::string load = load_before_ ? str("load ", report::fixed(*load_before_, 1), " before the run") : "";
  const std::string waited =
      waited_percent_ ? str("Octet's threads waited ", report::fixed(*waited_percent_, 0), " % of the time for a CPU")
                      : "";
  return str("the machine is too busy to trust these times (", waited, waited.empty() || load.empty() ? "" : "; ", load,
             "); repeat it when the others are done");
}

}  // namespace octet::app
