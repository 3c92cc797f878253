#include "train/options/precision.h"

#include "base/cpu_features.h"
#include "base/log.h"

namespace octet::train {

OCTET_ENUM_NAMES(Precision, {Precision::kFloat32, "fp32"}, {Precision::kBFloat16, "bf16"}, {Precision::kAuto, "auto"})

const char* precision_name(Precision precision) {
  return precision == Precision::kFloat64 ? "fp64" : schema::enum_name(precision);
}

Precision resolve_precision(Precision wanted, const std::string& device) {
  const bool fast = device != "cpu" || has_fast_bf16();
  if (wanted == Precision::kAuto) return fast ? Precision::kBFloat16 : Precision::kFloat32;
  if (wanted == Precision::kBFloat16 && !fast)
    log_warning("this CPU has no BF16 instructions; precision: fp32 would be faster than bf16 here");
  return wanted;
}

}  // namespace octet::train
