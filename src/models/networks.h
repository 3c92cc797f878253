// The builders behind zoo.cc's table, one family a file: the features, and the classifier of the last of them. They
// assume checked options, and lay both layouts: torchvision's names, or those of TAO's templates with their details
// (`NetBuilder::tao()`).
#pragma once
#include <algorithm>

#include "models/net_builder.h"
#include "models/zoo.h"

namespace octet::models {

using Levels = std::vector<FeatureLevel>;

// The last feature map of each stride is the level.
inline void add_level(Levels& levels, ir::Value* value, int64_t stride) {
  if (!levels.empty() && levels.back().stride == stride) levels.pop_back();
  levels.push_back({value, stride});
}

// The names of a convolution, its normalization and its activation.
struct LayerNames {
  std::string conv, norm, activation;
};
// As one torchvision module: name.0, name.1, name.2; as layers of TAO: name, name_bn, name_ACTIVATION.
inline LayerNames torchvision_names(const std::string& name) {
  return {name + ".0", name + ".1", name + ".2"};
}
inline LayerNames tao_names(const std::string& name, const std::string& activation = "relu") {
  return {name, name + "_bn", name + "_" + activation};
}
inline ir::Value* conv_norm_activation(NetBuilder& net, ir::Value* x, const LayerNames& names, const ConvSpec& spec,
                                       Activation published = Activation::kRelu) {
  return net.activation(net.batch_norm(net.conv(x, names.conv, spec), names.norm), names.activation, published);
}

// As torchvision rounds scaled channel counts: to a multiple of 8 that is at most a tenth below.
inline int64_t rounded_channels(double count) {
  const int64_t nearest = std::max<int64_t>(8, static_cast<int64_t>(count + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * count ? nearest + 8 : nearest;
}

// For networks whose pools do not pad. UserError (usage).
inline void require_pixels(const NetBuilder& net, int64_t least) {
  const auto& [channels, height, width] = net.options().input;
  if (height < least || width < least)
    fail_usage(net.options().arch, " needs at least ", least, "x", least, " pixels, not ", height, "x", width);
}

// CIFAR ResNets of He et al. 2015 (resnet20, resnet32, resnet56), with 1x1 projection shortcuts.
Levels cifar_resnet_features(NetBuilder& net);
// resnet10, resnet18, resnet34, resnet50, resnet101. torchvision's are version 1.5: a bottleneck strides in its 3x3
// convolution.
Levels resnet_features(NetBuilder& net);
ir::Value* resnet_classifier(NetBuilder& net, ir::Value* x);
// resnet50_v2, resnet101_v2 with Keras's names, as torchvision has none. A level is the normalized sum of its stride's
// blocks.
Levels resnet_v2_features(NetBuilder& net);
ir::Value* resnet_v2_classifier(NetBuilder& net, ir::Value* x);
// TAO's have plain ReLUs.
Levels mobilenet_v1_features(NetBuilder& net);
ir::Value* mobilenet_v1_classifier(NetBuilder& net, ir::Value* x);
Levels mobilenet_v2_features(NetBuilder& net);
ir::Value* mobilenet_v2_classifier(NetBuilder& net, ir::Value* x);
// mobilenet_v3_large, mobilenet_v3_small.
Levels mobilenet_v3_features(NetBuilder& net);
ir::Value* mobilenet_v3_classifier(NetBuilder& net, ir::Value* x);
// efficientnet_b0, efficientnet_b3. Stochastic depth, a training-time regularizer without an ONNX form, is not in the
// graph.
Levels efficientnet_features(NetBuilder& net);
ir::Value* efficientnet_classifier(NetBuilder& net, ir::Value* x);
// vgg16, vgg16_bn, vgg19. The first linear layer takes the feature map as it is (7x7 at 224x224); inputs from 32x32 up.
Levels vgg_features(NetBuilder& net);
ir::Value* vgg_classifier(NetBuilder& net, ir::Value* x);
// darknet19, darknet53; TAO's names in both layouts, as torchvision has none.
Levels darknet_features(NetBuilder& net);
ir::Value* darknet_classifier(NetBuilder& net, ir::Value* x);
// SqueezeNet 1.0. Its first convolution does not pad where a classifier of torchvision's layout is built.
Levels squeezenet_features(NetBuilder& net);
ir::Value* squeezenet_classifier(NetBuilder& net, ir::Value* x);
// GoogLeNet with batch normalization. torchvision's "5x5" branch has a 3x3 kernel, TAO's has the paper's.
Levels googlenet_features(NetBuilder& net);
ir::Value* googlenet_classifier(NetBuilder& net, ir::Value* x);
// Inception v3 without its auxiliary classifier. The classifier pads neither in the stem nor where it halves, and takes
// inputs from 75x75 up; the backbone does.
Levels inception_features(NetBuilder& net);
ir::Value* inception_classifier(NetBuilder& net, ir::Value* x);
// shufflenet_v2_x0_5, shufflenet_v2_x1_0.
Levels shufflenet_features(NetBuilder& net);
ir::Value* shufflenet_classifier(NetBuilder& net, ir::Value* x);
// regnet_y_400mf, regnet_y_800mf, regnet_y_1_6gf.
Levels regnet_features(NetBuilder& net);
ir::Value* regnet_classifier(NetBuilder& net, ir::Value* x);
// densenet121. A level is all that the blocks of its stride hand on; the last is normalized. Inputs from 32x32 up.
Levels densenet_features(NetBuilder& net);
ir::Value* densenet_classifier(NetBuilder& net, ir::Value* x);
// convnext_tiny. Inputs from 32x32 up; what 4x4 and 2x2 squares leave over at the borders is not looked at.
Levels convnext_features(NetBuilder& net);
ir::Value* convnext_classifier(NetBuilder& net, ir::Value* x);
// swin_t. Windows of seven by seven tokens of 4x4 pixels; borders are padded where they do not fit.
Levels swin_features(NetBuilder& net);
ir::Value* swin_classifier(NetBuilder& net, ir::Value* x);
// vit_tiny, vit_small. A token a square of 16x16 pixels (8x8 below 128 pixels, 4x4 below 64), whose side the size is a
// multiple of. The class token of timm's is row 0 of the position embedding here: the same numbers in one constant. Its
// one level is the image of the tokens, under a head of another task.
Levels vit_features(NetBuilder& net);
ir::Value* vit_classifier(NetBuilder& net, ir::Value* x);

}  // namespace octet::models
