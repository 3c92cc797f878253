// Which passes a stage runs, and in what order. That of `octet compile`, whose rewrites know the engine, is
// lower/rewrites.h: passes lie below it. `octet passes` lists both.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "passes/pipeline.h"
#include "quant/observer.h"
#include "quant/options.h"

namespace octet::passes {

// What brings a trained float graph into the form that quantization expects: canonical activations, no layout changes,
// batch norms folded. Dropouts stay where training goes on (QAT).
std::vector<Pass> preparation_passes(bool keep_dropout);

// What those who go on behind placement_passes() want to know of them.
struct PlacementRecord {
  quant::LayerCalibration layers;                   // what quant.layers say of the calibration of what was placed
  std::map<std::string, std::vector<int>> divided;  // of Equalized (equalize_channels.h)
};

// calibrate, quantize: before the images run through the network. place_fake_quant is the last. `peaks`: the largest
// values of clipped_tensors() (equalize_channels.h), which quant.equalize: unreached asks for. `record` may be nullptr.
std::vector<Pass> placement_passes(const quant::QuantOptions& options, const std::map<std::string, float>& peaks = {},
                                   PlacementRecord* record = nullptr);
// ... and behind them.
std::vector<Pass> scale_passes(const std::map<std::string, quant::Range>& ranges,
                               const quant::WeightCalibrationOptions& weights);

// train: before a network of somebody else is trained.
std::vector<Pass> training_passes();
// train: at the end of stage qat; from here on the graph is the deployed arithmetic.
std::vector<Pass> deployment_passes();

// verify: of a checkpoint, whose biases are not yet on the accumulator's grid, as they are at the end of a training.
std::vector<Pass> checkpoint_passes();

// export: for every target. (What single targets need is in app/export_target.h.)
std::vector<Pass> export_passes();

// For people.
struct Stage {
  std::string name, description;
  std::vector<Pass> passes;
};
std::vector<Stage> stages();

}  // namespace octet::passes
