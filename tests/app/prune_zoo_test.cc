// Every network of the zoo, at every threshold: pruned it computes what it computes masked, in the engine.
#include <gtest/gtest.h>

#include "app/prune/proof.h"
#include "app/prune/table.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "models/zoo.h"
#include "passes/prune/cut.h"
#include "support/sanitized.h"
#include "support/trained_look.h"

namespace octet::app {
namespace {

class PruneZoo : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const models::ModelInfo& model : models::all_models())
    if (!testing::kSanitized || model.parameters < 6'000'000) out.push_back(model.name);
  return out;
}

int64_t model_parameters(const std::string& name) {
  for (const models::ModelInfo& model : models::all_models())
    if (model.name == name) return model.parameters;
  return 0;
}

// Layers of the transformers and of ConvNeXt that make what a layer normalization reads.
bool is_normalized(const std::string& layer) {
  const auto ends_with_one_of = [&](const std::vector<const char*>& ends) {
    return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return layer.ends_with(end); });
  };
  const std::string& network = PruneZoo::GetParam();
  if (network.starts_with("vit")) return ends_with_one_of({"proj", "fc2"});
  if (network == "swin_t") return ends_with_one_of({"features.0.0", "proj", "mlp.3", "reduction"});
  return network == "convnext_tiny" && (ends_with_one_of({"features.0.0", "block.0", "block.5"}) ||
                                        layer == "features.2.1" || layer == "features.4.1" || layer == "features.6.1");
}

TEST_P(PruneZoo, PrunedEqualsMasked) {
  models::ModelOptions options = models::default_options(GetParam());
  options.num_classes = 10;
  const int64_t side = GetParam() == "inception_v3" ? 75 : 32;
  options.input = {3, side, side};
  ir::Graph graph = models::build_model(options);
  testing::look_trained(graph);
  ir::set_batch(graph, 1);
  const std::vector<NetworkTensors> inputs = random_inputs(graph, 1);
  double ratio = 1;
  // Every third for networks that take long.
  const int step = testing::kSanitized || model_parameters(GetParam()) > 4'000'000 ? 3 : 1;
  for (int i = step; i <= 9; i += step) {
    passes::PruneOptions prune;
    if (i % 2 == 0) prune.granularity = 1, prune.min_filters = 1;  // odd channel counts
    const passes::ChannelGroups groups(graph, prune);
    const passes::KeptIndices kept = groups.at(i / 10.0);
    const ir::Graph pruned = passes::cut_channels(graph, kept);
    ir::verify(pruned);
    const PruneProof proof = prove_pruned(passes::mask_channels(graph, kept), pruned, inputs, 1);
    EXPECT_TRUE(proof.holds()) << "threshold 0." << i << ": " << proof.largest_difference << " of "
                               << proof.largest_output << " by " << proof.ran_by;
    EXPECT_GT(proof.largest_output, 0);
    const PruneSummary summary = summarize_pruning(graph, pruned, groups);
    if (i % 2 == 1) {
      EXPECT_LE(summary.pruning_ratio(), ratio);
      ratio = summary.pruning_ratio();
    }
    // Only the last layer keeps all: it makes the output. So do those whose channels are normalized together.
    for (const PrunedLayer& layer : summary.layers)
      EXPECT_EQ(layer.group < 0, is_normalized(layer.name) || &layer == &summary.layers.back()) << layer.name;
  }
  EXPECT_LT(ratio, 0.45);
}

INSTANTIATE_TEST_SUITE_P(All, PruneZoo, ::testing::ValuesIn(names()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace octet::app
