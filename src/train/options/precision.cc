#include "train/options/precision.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/cpu_features.h"
#include "base/log.h"

namespace octet::train {
namespace {

// Only training asks for it, so it is not among the features of kernels.
bool has_fast_fp16() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;  // AVX512-FP16 is bit 23 of edx
  return cpu_features().avx512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 23 & 1);
#else
  return false;
#endif
}

}  // namespace

OCTET_ENUM_NAMES(Precision, {Precision::kFloat32, "fp32"}, {Precision::kBFloat16, "bf16"},
                 {Precision::kFloat16, "fp16"}, {Precision::kAuto, "auto"})

const char* precision_name(Precision precision) {
  return precision == Precision::kFloat64 ? "fp64" : schema::enum_name(precision);
}

Precision resolve_precision(Precision wanted, const std::string& device) {
  const bool fast = device != "cpu" || has_fast_bf16();
  if (wanted == Precision::kAuto) return fast ? Precision::kBFloat16 : Precision::kFloat32;
  if (wanted == Precision::kBFloat16 && !fast)
    log_warning("this CPU has no BF16 instructions; precision: fp32 would be faster than bf16 here");
  if (wanted == Precision::kFloat16 && device == "cpu" && !has_fast_fp16())
    log_warning("this CPU has no FP16 instructions; precision: fp32 would be much faster than fp16 here");
  return wanted;
}

}  // namespace octet::train
