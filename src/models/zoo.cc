#include "models/zoo.h"

#include <algorithm>

#include "base/nearest.h"
#include "models/networks.h"

namespace octet::models {
namespace {

struct Row {
  ModelInfo info;
  Levels (*features)(NetBuilder&);
  ir::Value* (*classifier)(NetBuilder&, ir::Value* last_level);
  Published published = {};
};

// Published counts: the CIFAR ResNets of He et al. 2015 (0.27, 0.46, 0.85 million parameters with parameter-free
// shortcuts) are built with projection shortcuts, which quantize as ordinary convolutions and add 2,752 parameters;
// these numbers are those of the widely used chenyaofo/pytorch-cifar-models. The others are torchvision's,
// MobileNetV1's those of Howard et al. 2017 and Keras (trainable); ResNet-10's and the DarkNets' those of imgclsmob,
// whose Darknet-19 is that of Redmon and Farhadi 2017 (5.58 GFLOPs). The pre-activation ResNets' are Keras's
// (trainable; 25,613,800 and 44,675,560 with their running statistics). GoogLeNet and Inception v3 are counted without
// their auxiliary classifiers; the ViTs' are timm's less the 192 or 384 of a class token that stands for itself there,
// with their products of activations among the MACs, as of Swin.
const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {{"resnet20", "ResNet-20 for small images (He et al. 2015)", {3, 32, 32}, 10, 272474, 0.04081},
       cifar_resnet_features,
       resnet_classifier},
      {{"resnet32", "ResNet-32 for small images (He et al. 2015)", {3, 32, 32}, 10, 466906, 0.06912},
       cifar_resnet_features,
       resnet_classifier},
      {{"resnet56", "ResNet-56 for small images (He et al. 2015)", {3, 32, 32}, 10, 855770, 0.12575},
       cifar_resnet_features,
       resnet_classifier},
      {{"resnet10", "ResNet-10 (one block a stage)", {3, 224, 224}, 1000, 5418792, 0.889},
       resnet_features,
       resnet_classifier},
      {{"resnet18", "ResNet-18 (He et al. 2015)", {3, 224, 224}, 1000, 11689512, 1.814},
       resnet_features,
       resnet_classifier},
      {{"resnet34", "ResNet-34 (He et al. 2015)", {3, 224, 224}, 1000, 21797672, 3.664},
       resnet_features,
       resnet_classifier},
      {{"resnet50", "ResNet-50 v1.5 (He et al. 2015; stride in the 3x3)", {3, 224, 224}, 1000, 25557032, 4.089},
       resnet_features,
       resnet_classifier},
      {{"resnet101", "ResNet-101 v1.5 (He et al. 2015; stride in the 3x3)", {3, 224, 224}, 1000, 44549160, 7.801},
       resnet_features,
       resnet_classifier},
      {{"resnet50_v2",
        "ResNet-50 v2 with pre-activation, as in Keras (He et al. 2016)",
        {3, 224, 224},
        1000,
        25568360,
        3.482},
       resnet_v2_features,
       resnet_v2_classifier,
       {.epsilon = 1.001e-5f, .momentum = 0.99f}},
      {{"resnet101_v2",
        "ResNet-101 v2 with pre-activation, as in Keras (He et al. 2016)",
        {3, 224, 224},
        1000,
        44577896,
        7.194},
       resnet_v2_features,
       resnet_v2_classifier,
       {.epsilon = 1.001e-5f, .momentum = 0.99f}},
      {{"mobilenet_v1", "MobileNetV1 1.0 (Howard et al. 2017)", {3, 224, 224}, 1000, 4231976, 0.569},
       mobilenet_v1_features,
       mobilenet_v1_classifier},
      {{"mobilenet_v2", "MobileNetV2 1.0 (Sandler et al. 2018)", {3, 224, 224}, 1000, 3504872, 0.301},
       mobilenet_v2_features,
       mobilenet_v2_classifier},
      {{"mobilenet_v3_large", "MobileNetV3 Large 1.0 (Howard et al. 2019)", {3, 224, 224}, 1000, 5483032, 0.217},
       mobilenet_v3_features,
       mobilenet_v3_classifier,
       {.epsilon = 1e-3f, .momentum = 0.99f}},
      {{"mobilenet_v3_small", "MobileNetV3 Small 1.0 (Howard et al. 2019)", {3, 224, 224}, 1000, 2542856, 0.05651},
       mobilenet_v3_features,
       mobilenet_v3_classifier,
       {.epsilon = 1e-3f, .momentum = 0.99f}},
      {{"efficientnet_b0", "EfficientNet-B0 (Tan and Le 2019)", {3, 224, 224}, 1000, 5288548, 0.386},
       efficientnet_features,
       efficientnet_classifier},
      {{"efficientnet_b3", "EfficientNet-B3 (Tan and Le 2019)", {3, 300, 300}, 1000, 12233232, 1.827},
       efficientnet_features,
       efficientnet_classifier},
      {{"vgg16", "VGG-16 (Simonyan and Zisserman 2014)", {3, 224, 224}, 1000, 138357544, 15.47},
       vgg_features,
       vgg_classifier,
       {.batch_norm = false}},
      {{"vgg16_bn",
        "VGG-16 with batch normalization (Simonyan and Zisserman 2014)",
        {3, 224, 224},
        1000,
        138365992,
        15.47},
       vgg_features,
       vgg_classifier},
      {{"vgg19", "VGG-19 (Simonyan and Zisserman 2014)", {3, 224, 224}, 1000, 143667240, 19.63},
       vgg_features,
       vgg_classifier,
       {.batch_norm = false}},
      {{"darknet19", "Darknet-19 (Redmon and Farhadi 2017)", {3, 224, 224}, 1000, 20842376, 2.791},
       darknet_features,
       darknet_classifier},
      {{"darknet53", "Darknet-53 (Redmon and Farhadi 2018)", {3, 224, 224}, 1000, 41609928, 7.109},
       darknet_features,
       darknet_classifier},
      {{"squeezenet", "SqueezeNet 1.0 (Iandola et al. 2016)", {3, 224, 224}, 1000, 1248424, 0.819},
       squeezenet_features,
       squeezenet_classifier,
       {.batch_norm = false}},
      {{"googlenet", "GoogLeNet with batch normalization (Szegedy et al. 2014)", {3, 224, 224}, 1000, 6624904, 1.498},
       googlenet_features,
       googlenet_classifier,
       {.epsilon = 1e-3f}},
      {{"inception_v3", "Inception v3 (Szegedy et al. 2015)", {3, 299, 299}, 1000, 23834568, 5.713},
       inception_features,
       inception_classifier,
       {.epsilon = 1e-3f}},
      {{"shufflenet_v2_x0_5", "ShuffleNetV2 0.5 (Ma et al. 2018)", {3, 224, 224}, 1000, 1366792, 0.04048},
       shufflenet_features,
       shufflenet_classifier},
      {{"shufflenet_v2_x1_0", "ShuffleNetV2 1.0 (Ma et al. 2018)", {3, 224, 224}, 1000, 2278604, 0.14491},
       shufflenet_features,
       shufflenet_classifier},
      {{"regnet_y_400mf", "RegNetY-400MF (Radosavovic et al. 2020)", {3, 224, 224}, 1000, 4344144, 0.402},
       regnet_features,
       regnet_classifier},
      {{"regnet_y_800mf", "RegNetY-800MF (Radosavovic et al. 2020)", {3, 224, 224}, 1000, 6432512, 0.834},
       regnet_features,
       regnet_classifier},
      {{"regnet_y_1_6gf", "RegNetY-1.6GF (Radosavovic et al. 2020)", {3, 224, 224}, 1000, 11202430, 1.612},
       regnet_features,
       regnet_classifier},
      {{"densenet121", "DenseNet-121 (Huang et al. 2017)", {3, 224, 224}, 1000, 7978856, 2.834},
       densenet_features,
       densenet_classifier},
      {{"convnext_tiny", "ConvNeXt-Tiny (Liu et al. 2022)", {3, 224, 224}, 1000, 28589128, 4.456},
       convnext_features,
       convnext_classifier},
      {{"swin_t",
        "Swin-Tiny, a transformer of shifted windows (Liu et al. 2021)",
        {3, 224, 224},
        1000,
        28288354,
        4.491},
       swin_features,
       swin_classifier},
      {{"vit_tiny",
        "ViT-Tiny, a vision transformer (Dosovitskiy et al. 2021; Touvron et al. 2021)",
        {3, 224, 224},
        1000,
        5717224,
        1.254},
       vit_features,
       vit_classifier},
      {{"vit_small",
        "ViT-Small, a vision transformer (Dosovitskiy et al. 2021; Touvron et al. 2021)",
        {3, 224, 224},
        1000,
        22050280,
        4.599},
       vit_features,
       vit_classifier},
  };
  return rows;
}

const Row& find_row(const std::string& arch) {
  std::vector<std::string> names;
  std::string list;
  for (const Row& row : table()) {
    if (row.info.name == arch) return row;
    names.push_back(row.info.name);
    list += (list.empty() ? "" : ", ") + row.info.name;
  }
  fail_usage("unknown network '", arch, "'", did_you_mean(arch, names), "; known networks: ", list);
}

bool is_resnet(const std::string& arch) {
  return arch.starts_with("resnet");
}

// 2^14 pixels a side and 2^20 classes are far above any use and keep all sizes inside int64.
void check_options(const ModelOptions& options) {
  const auto check = [](const char* what, int64_t value, int64_t limit) {
    if (value < 1 || value > limit) fail_usage("model ", what, " is ", value, ", expected 1 to ", limit);
  };
  check("class count", options.num_classes, int64_t{1} << 20);
  check("input channel count", options.input[0], 1024);
  check("input height", options.input[1], int64_t{1} << 14);
  check("input width", options.input[2], int64_t{1} << 14);
  if (options.layout == Layout::kTao && !has_tao_layout(options.arch))
    fail_usage("model.layout: tao: NVIDIA TAO has no ", options.arch, "; leave the layout torchvision");
  if (!(options.dropout < 1)) fail_usage("model dropout is ", options.dropout, ", expected a probability below 1");
}

}  // namespace

// Those that NVIDIA TAO has no template of.
bool has_tao_layout(const std::string& arch) {
  const auto features = find_row(arch).features;
  for (const auto other :
       {cifar_resnet_features, resnet_v2_features, mobilenet_v3_features, inception_features, vit_features,
        shufflenet_features, regnet_features, densenet_features, convnext_features, swin_features})
    if (features == other) return false;
  return arch != "efficientnet_b3";
}

const std::vector<ModelInfo>& all_models() {
  static const std::vector<ModelInfo> infos = [] {
    std::vector<ModelInfo> out;
    for (const Row& row : table()) out.push_back(row.info);
    return out;
  }();
  return infos;
}

ModelOptions default_options(const std::string& arch) {
  const ModelInfo& info = find_row(arch).info;
  return {.arch = arch, .num_classes = info.num_classes, .input = info.input};
}

PixelStatistics usual_pixels(const std::string& arch, int64_t channels) {
  const bool small_images = find_row(arch).info.input[1] == 32;
  if (channels != 3) return small_images ? PixelStatistics{{0.4734}, {0.2507}} : PixelStatistics{{0.449}, {0.226}};
  return small_images ? PixelStatistics{{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}}
                      : PixelStatistics{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
}

ir::Graph build_model(const ModelOptions& options) {
  const Row& row = find_row(options.arch);
  check_options(options);
  NetBuilder net(options, row.published, /*backbone=*/false);
  ir::Value* features = row.features(net).back().value;
  net.begin_block(-1);
  ir::Value* logits = row.classifier(net, features);
  ir::Graph graph = net.take();
  graph.add_output(logits);
  return graph;
}

ir::Value* Backbone::level(int64_t stride) const {
  std::string strides;
  for (const FeatureLevel& level : levels) {
    if (level.stride == stride) return level.value;
    strides += (strides.empty() ? "" : ", ") + std::to_string(level.stride);
  }
  fail_usage("the network has no features of stride ", stride, "; it has ", strides);
}

Backbone build_backbone(const ModelOptions& options) {
  const Row& row = find_row(options.arch);
  check_options(options);
  NetBuilder net(options, row.published, /*backbone=*/true);
  std::vector<FeatureLevel> levels = row.features(net);
  return {.graph = net.take(), .levels = std::move(levels), .blocks = net.blocks()};
}

std::vector<std::string> unused_options(const ModelOptions& options) {
  std::vector<std::string> out;
  const auto unused = [&](const char* key, const char* reason) {
    out.push_back(str("model.", key, " is not used: ", options.arch, " has no ", reason));
  };
  const bool pools = (is_resnet(options.arch) && has_tao_layout(options.arch)) || options.arch.starts_with("vgg");
  if (options.use_pooling && !pools) unused("use_pooling", "pools that strides could replace");
  if (options.all_projections && !is_resnet(options.arch)) unused("all_projections", "shortcuts that it concerns");
  if (options.batch_norm_epsilon > 0) {
    ModelOptions shapes = options;
    shapes.draw_weights = false;
    const ir::Graph graph = build_model(shapes);
    const auto is_norm = [](const auto& node) { return node->kind == ir::OpKind::kBatchNormalization; };
    if (std::ranges::none_of(graph.nodes(), is_norm)) unused("batch_norm_epsilon", "batch norms");
  }
  return out;
}

}  // namespace octet::models
