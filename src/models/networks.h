// The builders behind zoo.cc's table, one family a file. They assume checked options.
#pragma once
#include "models/zoo.h"

namespace octet::models {

// CIFAR ResNets of He et al. 2015 (resnet20, resnet32, resnet56), with 1x1 projection shortcuts.
ir::Graph build_cifar_resnet(const ModelOptions& options);
// resnet18, resnet34, resnet50, resnet101; version 1.5: a bottleneck strides in its 3x3 convolution.
ir::Graph build_resnet(const ModelOptions& options);
ir::Graph build_mobilenet_v1(const ModelOptions& options);
ir::Graph build_mobilenet_v2(const ModelOptions& options);
// efficientnet_b0. Stochastic depth, a training-time regulariser without an ONNX form, is not in the graph.
ir::Graph build_efficientnet(const ModelOptions& options);
// vgg16_bn. The first linear layer takes the feature map as it is (7x7 at 224x224); inputs from 32x32 up.
ir::Graph build_vgg(const ModelOptions& options);

}  // namespace octet::models
