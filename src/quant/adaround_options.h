// What adaptive rounding is told (train/adaround.h).
#pragma once
#include <cstdint>

#include "schema/enum_names.h"

namespace octet::quant {

struct AdaRoundOptions {
  int64_t iterations = 0;  // of each layer; 0: off
  int64_t images = 500;    // of the calibration images, of which the layers' inputs are kept
  int64_t batch_size = 32;
  double lr = 1e-2;              // of Adam
  double regularization = 0.01;  // weight of the term that drives each weight up or down
};
void describe(schema::Section& s, AdaRoundOptions& options);

}  // namespace octet::quant
