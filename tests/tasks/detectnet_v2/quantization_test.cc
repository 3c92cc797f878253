// TAO builds DetectNet_v2 on mobilenet_v1 and mobilenet_v2 without a quantizer, whatever the specification asks for.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
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

// The detector with ResNet-18 in TAO's layout, by Octet's rules and by TAO's, against approved files beside those of
// the classifiers. To approve a change, run with OCTET_APPROVE=1 and look at the difference in git.
class DetectNetPlacement : public ::testing::TestWithParam<quant::PlacementRule> {};

TEST_P(DetectNetPlacement, MatchesTheApprovedText) {
  ir::Graph graph = Task(Options{}).build(
      {.arch = "resnet18", .num_classes = 3, .input = {3, 544, 960}, .layout = models::Layout::kTao});
  passes::fold_batch_norm(graph);
  // The task leaves its two heads in float, but for a DLA.
  const bool heads = GetParam() == quant::PlacementRule::kDla;
  const quant::PlacementOptions options{.rules = {GetParam()}, .quantize_last_layer = heads};
  const std::string actual = quant::placement_text(quant::plan_placement(graph, options));
  const std::string path = str(OCTET_SOURCE_DIR, "/tests/passes/golden/placement_detectnet_v2_resnet18_",
                               schema::enum_name(GetParam()), ".txt");
  const char* approve = std::getenv("OCTET_APPROVE");
  if (approve && *approve == '1') std::ofstream(path, std::ios::binary) << actual;
  EXPECT_EQ(actual, read_file(path)) << path;
}

INSTANTIATE_TEST_SUITE_P(Rules, DetectNetPlacement,
                         ::testing::Values(quant::PlacementRule::kAuto, quant::PlacementRule::kTao,
                                           quant::PlacementRule::kDla),
                         [](const auto& info) { return std::string(schema::enum_name(info.param)); });

}  // namespace
}  // namespace octet::tasks::detectnet_v2
