// The builders behind zoo.cc's table, one family a file: the features, and the classifier of the last of them. They
// assume checked options.
#pragma once
#include "models/net_builder.h"
#include "models/zoo.h"

namespace octet::models {

using Levels = std::vector<FeatureLevel>;

// The last feature map of each stride is the level.
inline void add_level(Levels& levels, ir::Value* value, int64_t stride) {
  if (!levels.empty() && levels.back().stride == stride) levels.pop_back();
  levels.push_back({value, stride});
}

// CIFAR ResNets of He et al. 2015 (resnet20, resnet32, resnet56), with 1x1 projection shortcuts.
Levels cifar_resnet_features(NetBuilder& net);
// resnet18, resnet34, resnet50, resnet101; version 1.5: a bottleneck strides in its 3x3 convolution.
Levels resnet_features(NetBuilder& net);
ir::Value* resnet_classifier(NetBuilder& net, ir::Value* x);
Levels mobilenet_v1_features(NetBuilder& net);
ir::Value* mobilenet_v1_classifier(NetBuilder& net, ir::Value* x);
Levels mobilenet_v2_features(NetBuilder& net);
ir::Value* mobilenet_v2_classifier(NetBuilder& net, ir::Value* x);
// efficientnet_b0. Stochastic depth, a training-time regularizer without an ONNX form, is not in the graph.
Levels efficientnet_features(NetBuilder& net);
ir::Value* efficientnet_classifier(NetBuilder& net, ir::Value* x);
// vgg16_bn. The first linear layer takes the feature map as it is (7x7 at 224x224); inputs from 32x32 up.
Levels vgg_features(NetBuilder& net);
ir::Value* vgg_classifier(NetBuilder& net, ir::Value* x);

}  // namespace octet::models
