#include "quant/calibrator.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "numerics/quantize.h"
#include "quant/density.h"
#include "quant/entropy.h"
#include "schema/schema.h"

namespace octet::quant {
namespace {

float mse_amax(const Density& density, int levels, double clipping_weight) {
  const auto error_of = [&](float amax) {
    const Density::SquaredError error = density.squared_errors(amax, levels);
    return error.rounding + clipping_weight * error.clipping;
  };
  float best = static_cast<float>(density.amax());
  double best_error = error_of(best);
  for (int k = density.bins() - 1; k > 0; --k) {
    const float candidate = static_cast<float>(k * density.width());  // an edge: exact in float
    const double error = error_of(candidate);
    if (error < best_error) {
      best_error = error;
      best = candidate;
    }
  }
  return best;
}

float percentile_amax(const Histogram& histogram, double percentile, bool skip_zeros) {
  const int64_t zeros = skip_zeros ? 0 : histogram.zeros();
  int64_t total = zeros;
  for (const int64_t n : histogram.bins()) total += n;
  const double wanted = percentile / 100 * static_cast<double>(total);
  int64_t seen = zeros;
  const int used = histogram.used_bins();
  for (int k = 0; k < used; ++k) {
    seen += histogram.bins()[static_cast<size_t>(k)];
    if (static_cast<double>(seen) >= wanted)
      return std::min(histogram.amax(), static_cast<float>((k + 1) * histogram.bin_width()));
  }
  return histogram.amax();
}

float mix_amax(const Histogram& histogram, int levels, bool skip_zeros) {
  const Density density(histogram);
  float best = histogram.amax();
  for (const double percentile : {99.9, 99.95, 99.99, 99.995, 99.999}) {
    const float candidate = percentile_amax(histogram, percentile, skip_zeros);
    if (density.squared_error(candidate, levels) < density.squared_error(best, levels)) best = candidate;
  }
  return best;
}

}  // namespace

OCTET_ENUM_NAMES(CalibrationMethod, {CalibrationMethod::kMax, "max"}, {CalibrationMethod::kMse, "mse"},
                 {CalibrationMethod::kPercentile, "percentile"}, {CalibrationMethod::kEntropy, "entropy"},
                 {CalibrationMethod::kMix, "mix"}, {CalibrationMethod::kEma, "ema"}, {CalibrationMethod::kSqnr, "sqnr"})

OCTET_ENUM_NAMES(CalibrationTransforms, {CalibrationTransforms::kValidation, "validation"},
                 {CalibrationTransforms::kTraining, "training"})

void describe(schema::Section& s, CalibrationOptions& calibration) {
  s.field("method", calibration.method)
      .help(
          "How the range of an activation is chosen from its histogram. sqnr: of mse, mse with a clipping_weight and "
          "max the one whose network gives out the least noise, on some of the images; bias correction and "
          "weights.method mse where these gain, too.");
  s.field("images", calibration.images)
      .range(1, 1e9)
      .known_elsewhere_as({"num_images", "samples", "batches"})
      .help("Images that are run, drawn at random (data.seed). 500 to 1,500 suit classification.");
  s.field("batch_size", calibration.batch_size)
      .range(1, 65'536)
      .unit("images")
      .help("Changes speed and memory, not the result.");
  s.field("transforms", calibration.transforms)
      .written_when([&calibration] { return calibration.transforms != CalibrationTransforms::kValidation; })
      .known_elsewhere_as({"transform"})
      .help(
          "What is done to the images: as in evaluation, or as in training, data.augment included (always the same for "
          "an image and data.seed). `octet calibrate --set data.augment...` gives calibration changes of its own.");
  s.field("percentile", calibration.percentile)
      .above(0, 100)
      .unit("percent")
      .help("percentile: share of the values that must fit the range.");
  s.field("averaging_constant", calibration.averaging_constant)
      .above(0, 1)
      .written_when([&calibration] { return calibration.averaging_constant != 0.01; })
      .help(
          "ema: c of peak = (1 - c) * peak + c * that of the image, in their order. 0.01 suits more than 100, 0.5 a "
          "few.");
  s.field("skip_zeros", calibration.skip_zeros)
      .written_when([&calibration] { return calibration.skip_zeros; })
      .help("percentile, mix: of the values other than zero; half of a tensor behind a ReLU are zeros.");
  s.field("clipping_weight", calibration.clipping_weight)
      .range(1, 1e9)
      .written_when([&calibration] { return calibration.clipping_weight != CalibrationOptions{}.clipping_weight; })
      .help(
          "mse: how many times the squared error of values that are cut off counts, which all have one sign and add up "
          "in later layers, where errors of rounding cancel. 1: the plain mean squared error.");
  s.field("entropy_guard", calibration.entropy_guard)
      .range(0, 1e9)
      .written_when([&calibration] { return calibration.entropy_guard != CalibrationOptions{}.entropy_guard; })
      .help(
          "entropy: thresholds with more than that many times the squared error of the full range are left out. 0: "
          "none, as in other toolkits, which cut rare large activations off.");
  s.list("tensors", calibration.tensors)
      .length(0, 10'000)
      .help("Tensors with a way of their own, as in [{name: \"head/*\", method: max}]; the first that fits counts.");
}

void describe(schema::Section& s, TensorCalibration& tensor) {
  s.field("name", tensor.name).required().help("A glob over names of tensors, as the JSON of calibrate lists them.");
  s.field("method", tensor.method).help("As for all.");
  s.field("percentile", tensor.percentile).above(0, 100).unit("percent").help("As for all.");
  s.field("skip_zeros", tensor.skip_zeros).help("As for all.");
}

CalibrationOptions CalibrationOptions::of_tensor(const std::string& name) const {
  CalibrationOptions out = *this;
  for (const TensorCalibration& tensor : tensors) {
    if (fnmatch(tensor.name.c_str(), name.c_str(), 0) != 0) continue;
    out.method = tensor.method, out.percentile = tensor.percentile, out.skip_zeros = tensor.skip_zeros;
    break;
  }
  return out;
}

bool CalibrationOptions::need_peaks() const {
  return method == CalibrationMethod::kEma ||
         std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorCalibration& t) { return t.method == CalibrationMethod::kEma; });
}

float calibrate_amax(const Histogram& histogram, int levels, const CalibrationOptions& options) {
  OCTET_CHECK(levels > 0, levels);
  if (histogram.used_bins() == 0) return 0;
  switch (options.method) {
    case CalibrationMethod::kMax:
      return histogram.amax();
    case CalibrationMethod::kMse:
    case CalibrationMethod::kSqnr:
      return mse_amax(Density(histogram), levels, options.clipping_weight);
    case CalibrationMethod::kPercentile:
      if (!(options.percentile > 0 && options.percentile <= 100))
        fail_usage("percentile ", options.percentile, " is not in (0, 100]; 99.99 is usual");
      return percentile_amax(histogram, options.percentile, options.skip_zeros);
    case CalibrationMethod::kMix:
      return mix_amax(histogram, levels, options.skip_zeros);
    case CalibrationMethod::kEntropy:
      return entropy_amax(histogram, levels, options.entropy_guard);
    case CalibrationMethod::kEma:
      OCTET_CHECK(false, "a histogram has no order");
  }
  OCTET_CHECK(false, "calibration method");
  return 0;
}

double clipped_fraction(const Histogram& histogram, float amax) {
  if (histogram.count() == 0) return 0;
  const Density density(histogram);
  return (density.total().mass - density.up_to(amax).mass) / static_cast<double>(histogram.count());
}

double mean_squared_error(const Histogram& histogram, float amax, int levels) {
  if (histogram.count() == 0) return 0;
  return Density(histogram).squared_error(amax, levels) / static_cast<double>(histogram.count());
}

std::vector<MethodResult> compare_methods(const Histogram& histogram, int levels) {
  const std::pair<const char*, CalibrationOptions> methods[] = {
      {"max", {.method = CalibrationMethod::kMax}},
      {"mse", {.method = CalibrationMethod::kMse}},
      {"percentile 99.99", {.method = CalibrationMethod::kPercentile}},
      {"mix", {.method = CalibrationMethod::kMix}},
      {"entropy", {.method = CalibrationMethod::kEntropy}},
      {"entropy, unguarded", {.method = CalibrationMethod::kEntropy, .entropy_guard = 0}}};
  const Density density(histogram);
  std::vector<MethodResult> results;
  for (const auto& [name, options] : methods) {
    MethodResult r{.method = name, .amax = calibrate_amax(histogram, levels, options)};
    r.scale = numerics::scale_from_amax(r.amax, levels);
    r.clipped_fraction = clipped_fraction(histogram, r.amax);
    const double error = density.squared_error(r.amax, levels);
    if (error > 0) r.sqnr_db = 10 * std::log10(density.total().second / error);
    results.push_back(std::move(r));
  }
  return results;
}

}  // namespace octet::quant
