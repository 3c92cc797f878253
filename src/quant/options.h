// Everything that an experiment says about quantization.
#pragma once
#include "quant/calibrator.h"
#include "quant/placement.h"
#include "quant/scale_averaging.h"
#include "quant/weight_calibrator.h"

namespace octet::quant {

struct QuantOptions {
  bool enable_qat = true;  // false: stage qat fine-tunes without fake quantization, as stage control does
  CalibrationOptions calibration;
  WeightCalibrationOptions weights;
  PlacementOptions placement;
  ScaleAveraging averaging;
};
void describe(schema::Section& s, QuantOptions& quant);

}  // namespace octet::quant
