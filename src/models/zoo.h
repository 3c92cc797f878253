// The networks that Octet knows by name. Each is built as a float graph in inference form with fresh weights.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schema/enum_names.h"

namespace octet::models {

// Names of the layers, and the details in which the two worlds differ where the paper leaves them open.
enum class Layout {
  kTorchvision,
  // The templates of NVIDIA TAO: weights of its models fit by name. Convolutions have a bias beside their
  // normalization, which divides by sqrt(variance + 1e-3); blocks stride in their first convolution, and the first of a
  // stage always projects its shortcut; resnets end at stride 16 (use_pooling).
  kTao,
};

// Of the layers inside; gates and outputs keep theirs.
enum class Activation { kPublished, kRelu, kRelu6, kLeakyRelu, kElu, kSilu, kGelu, kHardSwish };

std::span<const schema::EnumName<Layout>> enum_names(Layout);
std::span<const schema::EnumName<Activation>> enum_names(Activation);

struct ModelOptions {
  std::string arch = "resnet18";                 // a name of all_models()
  int64_t num_classes = 1000;                    // > 0
  std::array<int64_t, 3> input = {3, 224, 224};  // channels, height, width
  uint64_t seed = 1;                             // of the initial weights
  bool draw_weights = true;                      // false: zeros, for those who ask for names and shapes alone
  // Probability of the Dropout before the classifier in [0, 1); negative: that of the published network. 0 leaves the
  // node out.
  double dropout = -1;
  // Start with gamma 0 in the last normalization of every residual branch (Goyal et al. 2017), or, where a convolution
  // ends it, with weights of 0.
  bool zero_init_residual = false;
  // Added to the variance that batch norms divide by; 0: that of the published network.
  double batch_norm_epsilon = 0;
  Layout layout = Layout::kTorchvision;
  // Absent: as published. Without normalization its convolutions get a bias.
  std::optional<bool> use_batch_norm;
  // ResNets and VGGs: pools halve the features, or else strides of the convolutions behind them. Absent: pools, but
  // none in TAO's layout. TAO's resnets without pools have the strides 2, 2, 2, 1, so that they end at stride 16.
  std::optional<bool> use_pooling;
  bool all_projections = false;  // ResNets: a 1x1 convolution on every shortcut, so that every channel can be pruned
  Activation activation = Activation::kPublished;
  // What training leaves alone; freeze() applies it, the builders do not. Blocks are TAO's: 0 the stem, then the
  // stages, fire and inception modules, or inverted residuals; VGG counts from 1.
  std::vector<int64_t> freeze_blocks;
  bool freeze_bn = false;  // running statistics, scale and shift of every batch norm
  // For those who start from trained weights; build_model() knows none of it.
  std::string pretrained;   // file with the starting weights, matched by name; empty: random
  bool load_graph = false;  // train the graph of `pretrained` as it is; arch and num_classes are then not used
  // Shapes of the inputs of an ONNX file that is taken as it is, for sizes that it leaves open (ir/input_shape.h).
  std::vector<std::string> input_shape;
  // Weights of `pretrained` that do not fit the network are left out instead of refused.
  bool allow_loaded_model_modification = false;

  // What an experiment leaves open, and whoever reads it finds (spec/automatic.h); build_model() knows none of it.
  bool auto_num_classes = false, auto_input = false;
  // Who read the experiment found nobody that says `input`, which then is only that of the published network.
  bool input_unsaid = false;

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

// Mean and standard deviation, by channel, of pixels in [0, 1] of the images that the network is usually trained with:
// CIFAR-10's for those of images of 32 pixels, else ImageNet's; of their gray values for one channel.
struct PixelStatistics {
  std::vector<double> mean, std;
};
PixelStatistics usual_pixels(const std::string& arch, int64_t channels);

// Input "input" float32[?, C, H, W], output "logits" float32[?, num_classes]. Nodes and parameters have torchvision's
// names ("layer1.0.conv1", "layer1.0.conv1.weight") or, in TAO's layout, the names of its layers ("block_1a_conv_1",
// "block_1a_conv_1.weight"). Weights, biases and normalization scales and offsets are trainable; running statistics
// (mean 0, variance 1) are not. Initial weights are drawn by the same rules in both layouts. The same options give the
// same bits on every machine. UserError (usage) for an unknown name (with the nearest) or impossible options.
ir::Graph build_model(const ModelOptions& options);

// A feature map of the network: the last one of its stride.
struct FeatureLevel {
  ir::Value* value;  // [batch, channels, height / stride, width / stride]; VGG rounds down, the others up
  int64_t stride;    // pixels of the input from one of its elements to the next
};

// A network without its classifier, for heads of other tasks to be built on: no outputs, names and initial weights as
// above. Where the published network cuts borders off (SqueezeNet's first convolution, Inception v3), the backbone
// pads, so that every level has the input's size divided by its stride; TAO's VGG and GoogLeNet go without the pool
// before the classifier's stage, and end at stride 16.
struct Backbone {
  ir::Graph graph;
  std::vector<FeatureLevel> levels;       // by rising stride
  std::map<std::string, int64_t> blocks;  // of the nodes by name, as freeze_blocks counts them

  // UserError (usage) with those there are where there is none of this stride.
  ir::Value* level(int64_t stride) const;
};
Backbone build_backbone(const ModelOptions& options);

// Whether `arch` can be built in the layout tao. UserError (usage) for an unknown name.
bool has_tao_layout(const std::string& arch);

// Options that are set and that this network has no use for, as a sentence each: for those who build it to say.
std::vector<std::string> unused_options(const ModelOptions& options);

}  // namespace octet::models
