// Everything that an experiment says about quantization.
#pragma once
#include <optional>

#include "quant/adaround_options.h"
#include "quant/calibrator.h"
#include "quant/gptq_options.h"
#include "quant/placement.h"
#include "quant/scale_averaging.h"
#include "quant/scale_training.h"
#include "quant/weight_calibrator.h"

namespace octet::quant {

// The weighted nodes behind which there is no other: a detector's outputs, a classifier's last product.
enum class Heads { kAuto, kInt8, kFloat };  // auto: as the task wants it
std::span<const schema::EnumName<Heads>> enum_names(Heads);

// Cross-layer equalization of channels before calibration (passes/equalize_channels.h). ReLU6 is in its way; it becomes
// ReLU always (relaxed), where no image of the calibration reaches its end (unreached), or never (exact).
enum class Equalization { kNo, kExact, kUnreached, kRelaxed };
std::span<const schema::EnumName<Equalization>> enum_names(Equalization);

// Batch norms behind layers in stage qat, as Horizon names the modes. fuse_bn: they are folded before calibration.
// with_bn: they train on, behind quantized weights, and are folded at the end, which changes no code, as scales of
// weights are those of channels and grow with them (what with_bn_reverse_fold is for elsewhere).
enum class QatMode { kFuseBn, kWithBn };
std::span<const schema::EnumName<QatMode>> enum_names(QatMode);

// Of the means that quantization moves. empirical: by images (app/bias_correction.h); analytic: by what the batch norms
// of the float network say (passes/analytic_bias_correction.h).
enum class BiasCorrection { kNo, kEmpirical, kAnalytic };
std::span<const schema::EnumName<BiasCorrection>> enum_names(BiasCorrection);

struct QuantOptions {
  // true: a training that no stage is named for is quantization-aware, and calibrates its float model first. false:
  // stage qat is refused. None: each stage is what it is called.
  std::optional<bool> enable_qat;
  QatMode qat_mode = QatMode::kFuseBn;
  Heads heads = Heads::kAuto;
  Equalization equalize = Equalization::kNo;
  BiasCorrection bias_correction = BiasCorrection::kNo;
  AdaRoundOptions adaround;
  GptqOptions gptq;
  CalibrationOptions calibration;
  WeightCalibrationOptions weights;
  PlacementOptions placement;
  ScaleAveraging averaging;
  ScaleTraining training;

  // Weights are rounded by what their layers give.
  bool rounds_by_results() const { return adaround.iterations > 0 || gptq.images > 0; }
};
void describe(schema::Section& s, QuantOptions& quant);

}  // namespace octet::quant
