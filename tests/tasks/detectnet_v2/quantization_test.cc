// TAO builds DetectNet_v2 on mobilenet_v1 and mobilenet_v2 without a quantizer, whatever the specification asks for.
#include <gtest/gtest.h>

#include "ir/query.h"
#include "passes/fold_batch_norm.h"
#include "passes/place_fake_quant.h"
#include "tasks/detectnet_v2/task.h"

namespace octet::tasks::detectnet_v2 {
namespace {

TEST(DetectNetQuantization, ReachesEveryConvolutionOfEveryBackbone) {
  for (const models::Layout layout : {models::Layout::kTorchvision, models::Layout::kTao})
    for (const char* arch : {"mobilenet_v1", "mobilenet_v2", "resnet10", "squeezenet", "googlenet", "efficientnet_b0",
                             "resnet50_v2", "mobilenet_v3_small", "inception_v3"}) {
      if (layout == models::Layout::kTao && !models::has_tao_layout(arch)) continue;
      ir::Graph graph = Task(Options{}).build({.arch = arch, .num_classes = 2, .input = {3, 32, 32}, .layout = layout});
      passes::fold_batch_norm(graph);
      passes::place_fake_quant(graph);
      int convolutions = 0;
      for (const auto& node : graph.nodes()) {
        if (node->kind != ir::OpKind::kConv) continue;
        EXPECT_TRUE(is_quantizer(node->input(0)->producer)) << arch << " " << node->name;
        EXPECT_TRUE(is_quantizer(node->input(1)->producer)) << arch << " " << node->name;
        ++convolutions;
      }
      EXPECT_GT(convolutions, 10) << arch;
    }
}

}  // namespace
}  // namespace octet::tasks::detectnet_v2
