#include "quant/observer.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "numerics/quantize.h"

namespace octet::quant {

float Range::scale(int levels) const {
  return levels == 127 && int8_scale > 0 ? int8_scale : numerics::scale_from_amax(amax, levels);
}

Range Observer::range(const CalibrationOptions& options) const {
  Range r{.min = histogram_.min(), .max = histogram_.max(), .count = histogram_.count()};
  r.amax = calibrate_amax(histogram_, levels_, options);
  r.clipped_fraction = quant::clipped_fraction(histogram_, r.amax);
  return r;
}

CalibrationSet::CalibrationSet(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->kind != ir::OpKind::kFakeQuantize || node->input(0)->is_constant()) continue;
    const std::vector<int64_t> zero_point = node->input(2)->constant->to_ints();
    add(node->input(0)->name, static_cast<int>(node->get_int("qmax") - zero_point.at(0)));
  }
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

void CalibrationSet::merge(const std::string& name, const Histogram& seen) {
  const auto it = observers_.find(name);
  OCTET_CHECK(it != observers_.end(), "no observer for '", name, "'");
  it->second.merge(seen);
}

std::map<std::string, Range> CalibrationSet::ranges(const CalibrationOptions& options) const {
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
