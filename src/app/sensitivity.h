// What the quantization of each layer costs: a quantized network in which it alone is, and one in which all others are,
// beside the float network on the same images.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/model.h"
#include "data/loader.h"
#include "ir/graph.h"

namespace octet::app {

// The outputs of a network in its order, each for all images of the runner.
using NetworkOutputs = std::vector<std::vector<float>>;
using GraphRunner = std::function<NetworkOutputs(const ir::Graph&)>;

// By the engine, which is compiled for each network. Holds one epoch of the loader in memory; it outlives the loader. A
// network with a batch of its own gets the loader's batches, which must not be larger. UserError where there is no
// image.
GraphRunner run_by_engine(data::Loader& loader, const RunOptions& options);

// Signal to noise in decibels: over all numbers of an output, of several outputs the mean of noise / signal. Infinite
// where nothing differs.
double signal_to_noise_db(const NetworkOutputs& wanted, const NetworkOutputs& got);

struct LayerSensitivity {
  std::string node, op;
  double alone_db = 0;    // it is quantized, nothing else
  double without_db = 0;  // it is float, all else is quantized
};

struct Sensitivity {
  double whole_db = 0;                   // all that is quantized is
  std::vector<LayerSensitivity> layers;  // what costs most alone comes first
  bool codes_only = false;               // weights are on the grid of their quantizers, so what they lost is not seen
};

// Of a network whose quantizers have scales; it holds the weights as they were before (octet calibrate keeps them).
// Each layer takes two runs. UserError where nothing is quantized.
Sensitivity measure_sensitivity(const ir::Graph& quantized, const GraphRunner& run,
                                const std::function<void(int64_t layers)>& progress = {});

// At most `rows` layers; 0: all.
std::string sensitivity_table(const Sensitivity& sensitivity, size_t rows = 0);
// Infinite ratios are null.
nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity);

}  // namespace octet::app
