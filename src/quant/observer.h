// Observers of activations, one for each tensor that will be quantized.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "quant/calibrator.h"
#include "quant/layer_options.h"

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

// Whether calibration finds a zero point for this FakeQuantize, too: while it observes, one other than 0 says so.
bool is_asymmetric(const ir::Node& observing);

// The least and the largest value of a tensor for one image (or as many as the network takes at a time).
struct Peak {
  float low = 0, high = 0;
};
Peak peak_of(std::span<const float> values);

class Observer {
 public:
  // `levels`: the largest code, of asymmetric ones how many steps there are from the least to the largest.
  explicit Observer(int levels = 127, bool asymmetric = false) : levels_(levels), asymmetric_(asymmetric) {}

  // For the same tensor, with nothing observed.
  Observer unseen() const { return Observer(levels_, asymmetric_); }

  void observe(std::span<const float> values) { histogram_.observe(values); }
  // The ends of what one image gives, in the order of the images: what method ema goes by. Its range is the largest
  // magnitude of two averages, that of the least and of the largest values: m = (1 - c) m + c * that of the image, from
  // those of the first image on, as Horizon's min_max with an averaging constant. The result depends on the order of
  // the images, and on nothing else.
  void observe_peak(Peak peak) { peaks_.push_back(peak); }
  const std::vector<Peak>& peaks() const { return peaks_; }
  void merge(const Histogram& seen) { histogram_.merge(seen); }
  const Histogram& histogram() const { return histogram_; }
  // The largest magnitude stands for so many steps. Of asymmetric codes, which cover what was seen between its ends, as
  // many as there are on the side of the larger one.
  int levels() const;
  Range range(const CalibrationOptions& options = {}) const;

 private:
  int levels_;  // largest code: 127 or 255
  bool asymmetric_;
  Histogram histogram_;
  std::vector<Peak> peaks_;
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

  void add(const std::string& name, int levels, bool asymmetric = false) {
    observers_.emplace(name, Observer(levels, asymmetric));
  }
  // The same tensors and settings, with nothing observed.
  CalibrationSet unseen() const;
  // The values to watch, sorted.
  std::vector<std::string> names() const;
  // `name` must be one of names().
  void observe(const std::string& name, std::span<const float> values);
  void observe_peak(const std::string& name, Peak peak);
  // Adds what another histogram has seen of the same tensor (parts counted by several threads).
  void merge(const std::string& name, const Histogram& seen);
  const std::map<std::string, Observer>& observers() const { return observers_; }

  // What quant.layers say of these tensors, for ranges().
  void set_layers(LayerCalibration layers) { layers_ = std::move(layers); }
  // What method sqnr came to for the network; ranges() of that method go by it.
  void settle(CalibrationOptions chosen) { chosen_ = std::move(chosen); }
  const CalibrationOptions& settled(const CalibrationOptions& options) const {
    return options.method == CalibrationMethod::kSqnr && chosen_ ? *chosen_ : options;
  }
  // UserError naming the tensor when one was never observed, or held NaN or infinities.
  std::map<std::string, Range> ranges(const CalibrationOptions& of_all = {}) const;
  std::vector<TensorComparison> compare() const;
  size_t memory_bytes() const;

 private:
  std::map<std::string, Observer> observers_;
  LayerCalibration layers_;
  std::optional<CalibrationOptions> chosen_;
};

}  // namespace octet::quant
