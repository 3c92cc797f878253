// Empirical bias correction (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction,
// 2019, section 4.2 and appendix D) on the engine: quantization moves the mean of a channel, because the errors of
// weights and activations do not cancel; the difference to the float network's mean goes into the bias.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"

namespace octet::app {

struct BiasCorrections {
  std::map<std::string, std::vector<double>> shifts;  // by the name of a node, for each output channel
  int64_t images = 0;                                 // that they are means over
};

// What the float network gives: it is the same for every quantization of it.
struct FloatMeans {
  int64_t together = 0;                                // images of a run; 0: not known
  std::vector<std::vector<std::vector<double>>> runs;  // of each, of each node, of each channel
};

struct BiasCorrectionOptions {
  int64_t most_images = 0;  // the first of an epoch; 0: all
  int threads = 0;          // 0: as many as CPUs
  std::function<void(int64_t images)> progress = {};
  FloatMeans* of_float = nullptr;  // found by a call for the same float network and images, which need not run it again
};

// What to add to the biases of passes::nodes_to_correct(graph). `graph` has scales. The float network and the quantized
// one run over one epoch of `loader`, 16 images at a time (fewer where they are large, and as many as the graph fixes):
// what a node is corrected by is found behind the corrected nodes before it, on these images, and the mean over all
// counts. The result depends on neither threads nor the loader's batches. EngineCannotRun.
BiasCorrections bias_corrections(const ir::Graph& graph, data::Loader& loader,
                                 const BiasCorrectionOptions& options = {});

// Adds them, and puts the biases back on the accumulators' grids.
void apply_corrections(ir::Graph& graph, const std::map<std::string, std::vector<double>>& shifts);

// Both, with a bar that shows how far it is.
void correct_biases(ir::Graph& graph, data::Loader& loader);

}  // namespace octet::app
