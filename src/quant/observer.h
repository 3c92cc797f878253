// Observers of activations, one for each tensor that will be quantized.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "quant/calibrator.h"

namespace octet::quant {

// What calibration found out about one tensor.
struct Range {
  float amax = 0;               // that the largest code will stand for
  float int8_scale = 0;         // of 127 codes, where a calibration cache states it: amax / 127 but for the last bit
  float min = 0, max = 0;       // exact, of everything observed
  double clipped_fraction = 0;  // share of the observed values beyond amax, in [0, 1]
  int64_t count = 0;            // values observed

  float scale(int levels) const;  // amax > 0 stands for that many codes
};

class Observer {
 public:
  explicit Observer(int levels = 127) : levels_(levels) {}

  void observe(std::span<const float> values) { histogram_.observe(values); }
  void merge(const Histogram& seen) { histogram_.merge(seen); }
  const Histogram& histogram() const { return histogram_; }
  int levels() const { return levels_; }
  Range range(const CalibrationOptions& options = {}) const;

 private:
  int levels_;  // largest code: 127 or 255
  Histogram histogram_;
};

// Every method's result for one tensor, for reports.
struct TensorComparison {
  std::string tensor;
  float min = 0, max = 0;
  int64_t count = 0, zeros = 0;
  std::vector<MethodResult> methods;
};

// Observers by the name of the value they watch. Not for use from several threads at once.
class CalibrationSet {
 public:
  CalibrationSet() = default;
  // One observer for each activation (value that is not a constant) that a FakeQuantize of `graph` reads.
  explicit CalibrationSet(const ir::Graph& graph);

  void add(const std::string& name, int levels) { observers_.emplace(name, Observer(levels)); }
  // The values to watch, sorted.
  std::vector<std::string> names() const;
  // `name` must be one of names().
  void observe(const std::string& name, std::span<const float> values);
  // Adds what another histogram has seen of the same tensor (parts counted by several threads).
  void merge(const std::string& name, const Histogram& seen);
  const std::map<std::string, Observer>& observers() const { return observers_; }

  // UserError naming the tensor when one was never observed, or held NaN or infinities.
  std::map<std::string, Range> ranges(const CalibrationOptions& options = {}) const;
  std::vector<TensorComparison> compare() const;
  size_t memory_bytes() const;

 private:
  std::map<std::string, Observer> observers_;
};

}  // namespace octet::quant
