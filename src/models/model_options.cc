// The keys of the section `model` of an experiment.
#include "base/error.h"
#include "ir/input_shape.h"
#include "models/zoo.h"
#include "schema/schema.h"

namespace octet::models {

OCTET_ENUM_NAMES(Layout, {Layout::kTorchvision, "torchvision"}, {Layout::kTao, "tao"})
OCTET_ENUM_NAMES(Activation, {Activation::kPublished, "published"}, {Activation::kRelu, "relu"},
                 {Activation::kRelu6, "relu6"}, {Activation::kLeakyRelu, "leaky_relu"}, {Activation::kElu, "elu"},
                 {Activation::kSilu, "silu"}, {Activation::kGelu, "gelu"}, {Activation::kHardSwish, "hard_swish"})

namespace {

// true, false, or what the network was published with.
schema::Field& describe_switch(schema::Section& s, const std::string& name, std::optional<bool>& member) {
  return s.choice(name, member, {{std::nullopt, "published"}, {true, "true"}, {false, "false"}})
      .written_when([&member] { return member.has_value(); });
}

}  // namespace

void describe(schema::Section& s, ModelOptions& model) {
  s.field("arch", model.arch)
      .known_elsewhere_as({"backbone", "network", "name"})
      .help("Network of the zoo; `octet models` lists them.");
  s.field("layout", model.layout)
      .written_when([&model] { return model.layout != Layout::kTorchvision; })
      .help(
          "Names and details of the layers. tao: those of NVIDIA TAO, so that weights of its models fit by name; its "
          "resnets, vggs and googlenet end at stride 16 under a detector.");
  s.field("num_classes", model.num_classes)
      .range(1, 1'000'000)
      .or_auto(model.auto_num_classes)
      .known_elsewhere_as({"classes", "n_classes"})
      .help("Outputs of the classifier; must fit the data. auto: as many as the training images have classes.");
  s.field("input", model.input)
      .range(1, 16'384)
      .length(3, 3)
      .or_auto(model.auto_input)
      .unit("channels, height, width")
      .known_elsewhere_as({"input_size", "input_image_size"})
      .help("Shape of one image as the network sees it. auto: that for which `arch` was published.");
  s.field("pretrained", model.pretrained)
      .input_path()
      .known_elsewhere_as({"pretrained_model_file", "pretrained_model_path", "weights"})
      .help("File with the starting weights, matched by name: ONNX, safetensors or Keras HDF5; empty: random weights.");
  s.field("load_graph", model.load_graph)
      .help(
          "Train the graph of `pretrained` as it is (any ONNX network, also a pruned one) instead of building `arch`.");
  s.field("input_shape", model.input_shape)
      .written_when([&model] { return !model.input_shape.empty(); })
      .help(
          "Shapes of the inputs of an ONNX file, for sizes that it leaves open, as --input-shape says them: "
          "1x3x320x320, "
          "images:Nx3x320x320 (N: as the file has it). `input` is then of that size, too.");
  s.field("allow_loaded_model_modification", model.allow_loaded_model_modification)
      .written_when([&model] { return model.allow_loaded_model_modification; })
      .help(
          "Start weights of `pretrained` that have another shape than the network's from random ones; else an error.");
  describe_switch(s, "use_batch_norm", model.use_batch_norm)
      .help("Normalize behind every convolution. Without it, convolutions have a bias.");
  s.field("batch_norm_epsilon", model.batch_norm_epsilon)
      .range(0, 1)
      .written_when([&model] { return model.batch_norm_epsilon > 0; })
      .known_elsewhere_as({"bn_epsilon", "batch_norm_eps", "bn_eps"})
      .help(
          "Added to the variance that batch norms divide by; 0: that of the published network, 1e-5 in most. Networks "
          "of TensorFlow and Keras have 1e-3.");
  describe_switch(s, "use_pooling", model.use_pooling)
      .help(
          "resnets and VGGs: halve by pools, or by strides of the convolutions behind them. Published are pools; "
          "layout "
          "tao has none, and its resnets without them the stride 16.");
  s.field("all_projections", model.all_projections)
      .written_when([&model] { return model.all_projections; })
      .help("resnets: a 1x1 convolution on every shortcut, so that every channel can be pruned.");
  s.field("activation", model.activation)
      .written_when([&model] { return model.activation != Activation::kPublished; })
      .known_elsewhere_as({"activation_type"})
      .help("Of the layers inside; gates and outputs keep theirs.");
  s.field("freeze_blocks", model.freeze_blocks)
      .range(0, 1000)
      .written_when([&model] { return !model.freeze_blocks.empty(); })
      .help(
          "Blocks that training leaves alone, weights and batch norms: 0 the stem, then the stages, modules or "
          "inverted "
          "residuals; VGG counts from 1.");
  s.field("freeze_bn", model.freeze_bn)
      .written_when([&model] { return model.freeze_bn; })
      .help("Training leaves all batch norms alone: statistics, scale and shift.");
  s.field("dropout", model.dropout)
      .range(-1, 0.99)
      .known_elsewhere_as({"dropout_rate"})
      .help("Dropout before the classifier; negative: that of the published network. Detectors have none.");
  s.field("zero_init_residual", model.zero_init_residual)
      .help("Let every residual branch start at zero (last batch norm's scale 0).");
  s.rule("input_shape", [&model]() -> std::string {
    try {
      ir::parse_input_shapes(model.input_shape);
      return "";
    } catch (const UserError& e) {
      return e.what();
    }
  });
  s.rule("load_graph", [&model] {
    return model.load_graph && model.pretrained.empty() ? "needs model.pretrained, the ONNX file whose graph is meant"
                                                        : "";
  });
}

}  // namespace octet::models
