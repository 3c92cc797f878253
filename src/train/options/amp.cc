#include "train/options/amp.h"

#include <charconv>
#include <cmath>

#include "schema/schema.h"

namespace octet::train {
namespace {

// Of a static factor; nothing: `text` is no number that may be one.
std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool holds = error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1e38;
  return holds ? std::optional(value) : std::nullopt;
}

bool casts_model(OptLevel level) {
  return level == OptLevel::kO2 || level == OptLevel::kO3;
}

// Apex knows no low type but fp16.
Precision type_of(Precision wanted, OptLevel level, const std::string& device) {
  if (level == OptLevel::kO0) return Precision::kFloat32;
  if (level != OptLevel::kNone && wanted == Precision::kAuto) wanted = Precision::kFloat16;
  return resolve_precision(wanted, device);
}

}  // namespace

OCTET_ENUM_NAMES(OptLevel, {OptLevel::kNone, "none"}, {OptLevel::kO0, "O0"}, {OptLevel::kO1, "O1"},
                 {OptLevel::kO2, "O2"}, {OptLevel::kO3, "O3"})

void describe(schema::Section& s, AmpOptions& amp) {
  const std::vector<std::pair<std::optional<bool>, std::string>> bools = {
      {std::nullopt, "auto"}, {true, "true"}, {false, "false"}};
  s.field("opt_level", amp.opt_level)
      .help(
          "Opt level of Apex. O0: fp32. O1: convolutions and products in fp16 (or in `precision`: bf16), weights fp32. "
          "O2: all but batch norm, over fp32 masters. O3: all. none: as O1 in the type of `precision`.");
  s.choice("keep_batchnorm_fp32", amp.keep_batchnorm_fp32, bools)
      .help("O2, O3: parameters and statistics of normalizations stay fp32. auto: in O2.");
  s.choice("master_weights", amp.master_weights, bools).help("O2, O3: update fp32 copies of the weights. auto: in O2.");
  s.field("loss_scale", amp.loss_scale)
      .check("auto, dynamic or a number from 0 to 1e38",
             [](const std::string& text) { return text == "auto" || text == "dynamic" || number(text); })
      .help("Factor on the loss before backward; 0: dynamic. auto: dynamic in fp16 but in O3, else none.");
  s.field("per_loss", amp.per_loss)
      .known_elsewhere_as({"num_losses"})
      .help("A factor for each part of the loss, as num_losses of Apex: every part has a backward of its own.");
  s.section("scaler", amp.scaler).help("How a dynamic factor moves.");
}

std::string complaint(Precision precision, const AmpOptions& amp) {
  const bool low = precision == Precision::kBFloat16 || precision == Precision::kFloat16;
  if (amp.opt_level == OptLevel::kO0 && low)
    return str("is O0, which is fp32, and precision is ", precision_name(precision));
  if (amp.opt_level != OptLevel::kO0 && amp.opt_level != OptLevel::kNone && precision == Precision::kFloat32)
    return str("is ", schema::enum_name(amp.opt_level), ", and precision is fp32; leave precision out for fp16");
  if (casts_model(amp.opt_level) || (!amp.keep_batchnorm_fp32 && !amp.master_weights)) return "";
  return str("is ", schema::enum_name(amp.opt_level), "; ",
             amp.master_weights ? "master_weights" : "keep_batchnorm_fp32",
             " is for O2 and O3: in the others, weights and normalizations are fp32");
}

MixedPrecision resolve(Precision wanted, const AmpOptions& amp, const std::string& device) {
  MixedPrecision out;
  out.type = type_of(wanted, amp.opt_level, device);
  out.cast_model = casts_model(amp.opt_level);
  out.keep_batchnorm_fp32 = amp.keep_batchnorm_fp32.value_or(amp.opt_level != OptLevel::kO3);
  out.master_weights = amp.master_weights.value_or(amp.opt_level != OptLevel::kO3);
  if (amp.loss_scale == "auto") {
    if (out.type == Precision::kFloat16 && amp.opt_level != OptLevel::kO3) out.loss_scale = amp.scaler;
  } else if (const std::optional<double> factor = number(amp.loss_scale); factor.value_or(0) == 0) {
    out.loss_scale = amp.scaler;
  } else if (*factor != 1) {
    out.loss_scale = static_loss_scale(*factor);
  }
  out.per_loss = amp.per_loss && out.loss_scale;
  return out;
}

std::string text(const MixedPrecision& mixed) {
  const auto yes = [](bool value) { return value ? "true" : "false"; };
  std::string scale = "1.0";
  if (mixed.loss_scale) {
    const bool moves = mixed.loss_scale->growth_factor != 1 || mixed.loss_scale->backoff_factor != 1;
    scale = str(moves ? "dynamic from " : "", mixed.loss_scale->init_scale, mixed.per_loss ? " per loss" : "");
  }
  return str(precision_name(mixed.type), ", cast_model ", yes(mixed.cast_model), ", keep_batchnorm_fp32 ",
             yes(mixed.keep_batchnorm_fp32), ", master_weights ", yes(mixed.master_weights), ", loss_scale ", scale);
}

}  // namespace octet::train
