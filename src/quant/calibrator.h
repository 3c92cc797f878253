// From what was observed of a tensor to the range that its codes cover.
#pragma once
#include <string>
#include <vector>

#include "quant/histogram.h"
#include "schema/enum_names.h"

namespace octet::quant {

enum class CalibrationMethod { kMax, kMse, kPercentile, kEntropy, kMix, kEma, kSqnr };
std::span<const schema::EnumName<CalibrationMethod>> enum_names(CalibrationMethod);

// Some tensors calibrated in another way than the rest.
struct TensorCalibration {
  std::string name;  // a glob over the names of tensors, as calibrate's JSON lists them; * also matches /
  CalibrationMethod method = CalibrationMethod::kMse;
  double percentile = 99.99;
  bool skip_zeros = false;
};
void describe(schema::Section& s, TensorCalibration& tensor);

// What is done to the images of a calibration: what evaluation does, or what training does, random changes included.
enum class CalibrationTransforms { kValidation, kTraining };
std::span<const schema::EnumName<CalibrationTransforms>> enum_names(CalibrationTransforms);

struct CalibrationOptions {
  CalibrationMethod method = CalibrationMethod::kMse;
  int64_t images = 1000;  // that are observed
  int64_t batch_size = 50;
  CalibrationTransforms transforms = CalibrationTransforms::kValidation;
  double percentile = 99.99;         // percent in (0, 100], of method percentile
  double averaging_constant = 0.01;  // c in (0, 1] of method ema
  // Of method mse. Errors of rounding are as often up as down: they cancel in the sums of the next layers and in means
  // over pixels. What is cut off is always too small, in the same channels over whole regions, and adds up. So a
  // squared error of clipping may count more often: what is best depends on the network (method sqnr tries it). 1: the
  // mean squared error, as in other toolkits.
  double clipping_weight = 1;
  // Percentile of the values other than zero: half of a tensor behind a ReLU are zeros, which dilutes percentiles.
  bool skip_zeros = false;
  // Entropy compares distributions by mass: where the bins are as fine as the codes it sees nothing of the *energy*
  // that clipping removes, and rare large activations (a detector's objects) are cut off. So thresholds whose mean
  // squared error is above `entropy_guard` times that of the full range are not considered. 0: no guard, as in other
  // toolkits.
  double entropy_guard = 4;
  std::vector<TensorCalibration> tensors;  // the first whose name fits counts

  // Whether any tensor goes by the peaks of single images (ema), which are observed for that alone.
  bool need_peaks() const;
  // These options for one tensor.
  CalibrationOptions of_tensor(const std::string& name) const;
};
void describe(schema::Section& s, CalibrationOptions& options);

// The magnitude amax that the largest code stands for; scale = scale_from_amax(amax, levels). `levels`: the largest
// code, 127 (symmetric int8; that -128 exists is not used) or 255 (uint8, for tensors that cannot be negative). Never
// above the histogram's amax(); 0 for a tensor that was always zero.
//  max         the largest magnitude.
//  mse         the threshold with the smallest mean squared error, of all bin edges and amax() itself, that of clipped
//              values weighted by clipping_weight.
//  percentile  the first bin edge at or below which so many percent of the magnitudes lie.
//  mix         of some percentiles (99.9, 99.95, 99.99, 99.995, 99.999, 100) the one with the smallest mean squared
//              error, as Horizon's.
//  ema         not of a histogram: see Observer.
//  sqnr        one of these for the whole network (app/method_choice.h); of a tensor alone the same as mse.
//  entropy     Kullback-Leibler divergence over 2048 bins and levels + 1 codes, as TensorRT's calibrator 2 is
//  described.
float calibrate_amax(const Histogram& histogram, int levels, const CalibrationOptions& options = {});

// Share of all values (zeros included) that lie beyond amax, in [0, 1].
double clipped_fraction(const Histogram& histogram, float amax);
// Mean over all values of (x - fake_quantize(x))^2.
double mean_squared_error(const Histogram& histogram, float amax, int levels);

// One row of the side-by-side table of a report.
struct MethodResult {
  std::string method;  // "max", "mse", "percentile 99.99", "mix", "entropy", "entropy, unguarded"
  float amax = 0;
  float scale = 0;
  double clipped_fraction = 0;  // in [0, 1]
  double sqnr_db = 0;           // 10 log10(mean x^2 / mean squared error); 0 when the tensor is zero or exact
};
std::vector<MethodResult> compare_methods(const Histogram& histogram, int levels);

}  // namespace octet::quant
