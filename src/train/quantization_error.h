// What each quantizer of a network costs: the error of its own tensor, what has come together there from all before it,
// and what is left of the outputs where it alone quantizes.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"

namespace octet::train {

constexpr double kNoNoise = 200;  // dB

// Ratios of signal to noise in dB: 10 log10(sum x^2 / sum (x - y)^2), x of the float network, at most kNoNoise. The
// float network has the graph's weights: what is lost in weights that lie on their grid already is not to be seen.
struct QuantizerError {
  std::string quantizer, tensor;     // the FakeQuantize node, and what it quantizes
  std::vector<std::string> readers;  // the nodes that take its codes, in the order of the graph
  bool of_weights = false;
  double own_db = 0;                  // of the tensor, as the float network has it, and its codes
  double clipped = 0;                 // share of its elements beyond its codes, in [0, 1]
  double cumulative_db = 0;           // of the tensor where all are quantized, this one included; weights: own_db
  double cosine = 1;                  // between the two
  std::optional<double> isolated_db;  // of the network's outputs where nothing else is quantized, if it was run so
  // The same as the Fisher information has it: the squared errors of the elements, each by the mean of its squared
  // gradient, where outputs are means of Gaussians (so of random sums of the outputs: an estimate, from one draw an
  // image). One backward pass for all quantizers and not a pass for each; errors of elements count as independent.
  // (Zandonati et al. 2022, arXiv 2210.08502, which has the traces.)
  double fisher_db = 0;
};

struct QuantizationErrors {
  int64_t images = 0;
  double output_db = 0;                    // of the outputs where all are quantized
  std::vector<QuantizerError> quantizers;  // the most harmful first: ascending isolated_db, else fisher_db
};

// Of up to `images` images of one epoch of `loader`, whose batches should be small: the activations of one are kept.
// `graph` has scales; its only input takes [N, C, H, W]. Several outputs count alike. `progress`: quantizers done.
// `each_alone`: each quantizer is run by itself, too, which takes as many passes as there are quantizers. UserError
// where there is no image or no quantizer.
QuantizationErrors measure_quantization_errors(const ir::Graph& graph, data::Loader& loader, int64_t images,
                                               const std::function<void(int64_t done, int64_t of)>& progress = {},
                                               bool each_alone = true);

}  // namespace octet::train
