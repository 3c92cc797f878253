#include "train/trainer.h"

namespace octet::train {

ExecutorOptions executor_options(const TrainOptions& options, const MixedPrecision& mixed,
                                 const quant::ScaleAveraging& averaging) {
  return {.device = options.device,
          .precision = mixed.type,
          .cast_model = mixed.cast_model,
          .keep_batchnorm_fp32 = mixed.keep_batchnorm_fp32,
          .seed = static_cast<uint64_t>(options.seed),
          .averaging = averaging};
}

}  // namespace octet::train
