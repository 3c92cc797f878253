// The networks that Octet knows by name. Each is built as a float graph in inference form with fresh weights.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schema/enum_names.h"

namespace octet::models {

struct ModelOptions {
  std::string arch = "resnet18";                 // a name of all_models()
  int64_t num_classes = 1000;                    // > 0
  std::array<int64_t, 3> input = {3, 224, 224};  // channels, height, width
  uint64_t seed = 1;                             // of the initial weights
  // Probability of the Dropout before the classifier in [0, 1); negative: that of the published network. 0 leaves the
  // node out.
  double dropout = -1;
  // Start with gamma 0 in the last normalization of every residual branch (Goyal et al. 2017).
  bool zero_init_residual = false;
  // For those who start from trained weights; build_model() knows neither.
  std::string pretrained;   // ONNX file with the starting weights, matched by name; empty: random
  bool load_graph = false;  // train the graph of `pretrained` as it is; arch and num_classes are then not used

  int64_t channels() const { return input[0]; }
  int64_t height() const { return input[1]; }
  int64_t width() const { return input[2]; }
};
void describe(schema::Section& s, ModelOptions& model);

struct ModelInfo {
  std::string name;
  std::string description;       // one line
  std::array<int64_t, 3> input;  // of the published network
  int64_t num_classes;           // of the published network
  int64_t parameters;            // published, at that input and class count
  double gmacs;                  // published, 10^9 multiply-accumulates an image
};

// In the order in which they are listed to people.
const std::vector<ModelInfo>& all_models();

// Input and class count of the published network. UserError (usage) for an unknown name.
ModelOptions default_options(const std::string& arch);

// Input "input" float32[?, C, H, W], output "logits" float32[?, num_classes]. Nodes and parameters have torchvision's
// names ("layer1.0.conv1", "layer1.0.conv1.weight"). Weights, biases and normalization scales and offsets are
// trainable; running statistics (mean 0, variance 1) are not. The same options give the same bits on every machine.
// UserError (usage) for an unknown name (with the nearest) or impossible options.
ir::Graph build_model(const ModelOptions& options);

// A feature map of the network: the last one of its stride.
struct FeatureLevel {
  ir::Value* value;  // [batch, channels, height / stride, width / stride]; VGG rounds down, the others up
  int64_t stride;    // pixels of the input from one of its elements to the next
};

// A network without its classifier, for heads of other tasks to be built on: no outputs, names and initial weights as
// above.
struct Backbone {
  ir::Graph graph;
  std::vector<FeatureLevel> levels;  // by rising stride

  // UserError (usage) with those there are where there is none of this stride.
  ir::Value* level(int64_t stride) const;
};
Backbone build_backbone(const ModelOptions& options);

}  // namespace octet::models
