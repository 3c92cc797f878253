// Whether others kept the machine too busy for its times to mean anything.
#pragma once
#include <optional>
#include <string>

namespace octet::app {

class Busyness {
 public:
  // load_average() before the run. Times in any unit: how long the turns took, and how long, summed over threads, those
  // that took them waited for a CPU; 0 turned: nobody knows.
  Busyness(std::optional<double> load_before, double turned, double waited);

  std::optional<double> load_before() const { return load_before_; }
  std::optional<double> waited_percent() const { return waited_percent_; }
  bool too_busy(int cpus) const;
  // Why not to trust the times.
  std::string text() const;

 private:
  std::optional<double> load_before_, waited_percent_;
};

}  // namespace octet::app
