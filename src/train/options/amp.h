// Mixed precision as an experiment asks for it, and what that comes to. An opt level of Apex is a preset of the
// properties in MixedPrecision, each of which an experiment may set by itself.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "schema/enum_names.h"
#include "train/options/loss_scale.h"
#include "train/options/precision.h"

namespace octet::train {

// kNone: as O1, in the type that `precision` names.
enum class OptLevel { kNone, kO0, kO1, kO2, kO3 };
std::span<const schema::EnumName<OptLevel>> enum_names(OptLevel);

struct AmpOptions {
  OptLevel opt_level = OptLevel::kNone;
  // Empty: what the level says.
  std::optional<bool> keep_batchnorm_fp32, master_weights;
  std::string loss_scale = "auto";  // "auto": what the level says; "dynamic"; or a number, 0: dynamic, too
  LossScaleOptions scaler;          // of a dynamic one
  bool per_loss = false;            // one for each part of the loss
};
void describe(schema::Section& s, AmpOptions& amp);

// What a training does.
struct MixedPrecision {
  Precision type = Precision::kFloat32;  // never kAuto; that of what is low
  // false: convolutions, matrix products and what flows between them are low, weights are float32 and are rounded once
  // a step. true: the whole network is, weights, gradients and the values of all operators.
  bool cast_model = false;
  bool keep_batchnorm_fp32 = true;  // with cast_model: parameters and statistics of normalizations are float32
  bool master_weights = true;  // the optimizer updates float32 weights; false: those of the network, whatever they are
  bool per_loss = false;       // a factor for each part of the loss
  std::optional<LossScaleOptions> loss_scale;  // none: the loss is descended as it is
};

// What is wrong with `opt_level`, or nothing.
std::string complaint(Precision precision, const AmpOptions& amp);

// Of options without a complaint. Warns of types that `device` is slow at.
MixedPrecision resolve(Precision wanted, const AmpOptions& amp, const std::string& device);

// "fp16, O2: cast_model true, ..., loss_scale dynamic from 65536".
std::string text(const MixedPrecision& mixed);

}  // namespace octet::train
