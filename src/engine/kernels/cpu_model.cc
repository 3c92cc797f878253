#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

CpuModel model_of_this_cpu() {
  CpuModel model;
#if defined(__x86_64__)
  if (__builtin_cpu_is("amd")) {
    model.cycles_per_us_of_zen4 = 5600;
    model.shared_ports = false;
    model.weight_transform = 2.1;
    model.residual_tables = true;
  }
#endif
  return model;
}

}  // namespace

const CpuModel& cpu_model() {
  static const CpuModel model = model_of_this_cpu();
  return model;
}

}  // namespace octet::kernels
