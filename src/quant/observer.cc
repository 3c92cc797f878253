#include "quant/observer.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "numerics/quantize.h"

namespace octet::quant {

float Range::scale(int levels) const {
  return levels == 127 && int8_scale > 0 ? int8_scale : numerics::scale_from_amax(amax, levels);
}

namespace {

float average_peak(const std::vector<Peak>& peaks, double c) {
  if (peaks.empty()) fail("calibration by method ema goes by the peaks of single images, and none were observed");
  double low = peaks[0].low, high = peaks[0].high;
  for (const Peak& peak : peaks) low += c * (peak.low - low), high += c * (peak.high - high);
  return static_cast<float>(std::max(std::abs(low), std::abs(high)));
}

}  // namespace

Peak peak_of(std::span<const float> values) {
  Peak out;
  bool any = false;
  for (const float x : values) {
    if (!std::isfinite(x)) continue;  // the histogram counts them, and ranges() refuses them
    out.low = any ? std::min(out.low, x) : x;
    out.high = any ? std::max(out.high, x) : x;
    any = true;
  }
  return out;
}

bool is_asymmetric(const ir::Node& observing) {
  return observing.get_string("state") == ir::kObserving && observing.input(2)->constant->to_ints().at(0) != 0;
}

int Observer::levels() const {
  if (!asymmetric_) return levels_;
  const double low = std::min(0.0f, histogram_.min()), high = std::max(0.0f, histogram_.max());
  if (high <= low) return levels_;
  return static_cast<int>(std::lround(levels_ * std::max(high, -low) / (high - low)));
}

Range Observer::range(const CalibrationOptions& options) const {
  Range r{.min = histogram_.min(), .max = histogram_.max(), .count = histogram_.count()};
  r.amax = options.method == CalibrationMethod::kEma
               ? std::min(average_peak(peaks_, options.averaging_constant), histogram_.amax())
               : calibrate_amax(histogram_, levels(), options);
  r.clipped_fraction = quant::clipped_fraction(histogram_, r.amax);
  return r;
}

CalibrationSet::CalibrationSet(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->kind != ir::OpKind::kFakeQuantize || node->input(0)->is_constant()) continue;
    const bool asymmetric = is_asymmetric(*node);
    const int64_t from = asymmetric ? node->get_int("qmin") : node->input(2)->constant->to_ints().at(0);
    add(node->input(0)->name, static_cast<int>(node->get_int("qmax") - from), asymmetric);
  }
}

CalibrationSet CalibrationSet::unseen() const {
  CalibrationSet out;
  for (const auto& [name, observer] : observers_) out.observers_.emplace(name, observer.unseen());
  out.layers_ = layers_;
  return out;
}

std::vector<std::string> CalibrationSet::names() const {
  std::vector<std::string> out;
  for (const auto& [name, observer] : observers_) out.push_back(name);
  return out;
}

void CalibrationSet::observe(const std::string& name, std::span<const float> values) {
  const auto it = observers_.find(name);
  OCTET_CHECK(it != observers_.end(), "no observer for '", name, "'");
  it->second.observe(values);
}

void CalibrationSet::observe_peak(const std::string& name, Peak peak) {
  const auto it = observers_.find(name);
  OCTET_CHECK(it != observers_.end(), "no observer for '", name, "'");
  it->second.observe_peak(peak);
}

void CalibrationSet::merge(const std::string& name, const Histogram& seen) {
  const auto it = observers_.find(name);
  OCTET_CHECK(it != observers_.end(), "no observer for '", name, "'");
  it->second.merge(seen);
}

std::map<std::string, Range> CalibrationSet::ranges(const CalibrationOptions& of_all) const {
  const CalibrationOptions options = with_layers(settled(of_all), layers_);
  std::map<std::string, Range> out;
  for (const auto& [name, observer] : observers_) {
    const Histogram& h = observer.histogram();
    if (h.nans() + h.infinities() > 0)
      fail("calibration: tensor '", name, "' held ", h.nans(), " NaN and ", h.infinities(), " infinite values among ",
           h.count() + h.nans() + h.infinities(), "; check the model's weights and the input's normalization");
    if (h.count() == 0)
      fail("calibration: tensor '", name, "' was never observed; give calibration at least one image");
    out.emplace(name, observer.range(options.of_tensor(name)));
  }
  for (const TensorCalibration& tensor : options.tensors)
    if (std::none_of(observers_.begin(), observers_.end(),
                     [&](const auto& o) { return fnmatch(tensor.name.c_str(), o.first.c_str(), 0) == 0; }))
      fail_usage("calibration: '", tensor.name, "' is the name of no tensor that is quantized",
                 did_you_mean(tensor.name, names()));
  return out;
}

std::vector<TensorComparison> CalibrationSet::compare() const {
  std::vector<TensorComparison> out;
  for (const auto& [name, observer] : observers_) {
    const Histogram& h = observer.histogram();
    out.push_back({name, h.min(), h.max(), h.count(), h.zeros(), compare_methods(h, observer.levels())});
  }
  return out;
}

size_t CalibrationSet::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& [name, observer] : observers_) bytes += observer.histogram().memory_bytes();
  return bytes;
}

}  // namespace octet::quant
