#include "weights/load_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/infer.h"
#include "models/zoo.h"

namespace octet::weights {
namespace {

using State = LoadedWeight::State;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ir::Graph network(uint64_t seed, int64_t classes = 10) {
  models::ModelOptions options;
  options.arch = "resnet20", options.num_classes = classes, options.input = {3, 32, 32}, options.seed = seed;
  return models::build_model(options);
}

checkpoint::NamedTensors file_of(const ir::Graph& graph) {
  checkpoint::NamedTensors out;
  for (const ir::Value* v : graph.constants())
    if (v->type.data_type == ir::DataType::kFloat32) out[v->name] = *v->constant;
  return out;
}

std::vector<float> values(const ir::Graph& graph, const char* name) {
  return graph.find_value(name)->constant->to_floats();
}

std::string complaint(const WeightReport& report, bool allow = false) {
  try {
    require_loaded(report, "m.onnx", allow);
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    return e.what();
  }
  return "";
}

TEST(LoadWeightsTest, TakesParametersAndStatisticsByName) {
  ir::Graph graph = network(1);
  const ir::Graph other = network(2);
  checkpoint::NamedTensors file = file_of(other);
  file["layer1.0.bn1.running_mean"] = ir::Tensor::of<float>({16}, std::vector<float>(16, 0.5f));
  const WeightReport report = load_weights(graph, file);
  EXPECT_EQ(report.count(State::kLoaded), std::ssize(report.weights));
  EXPECT_TRUE(report.unused.empty());
  EXPECT_EQ(values(graph, "layer2.0.conv1.weight"), values(other, "layer2.0.conv1.weight"));
  EXPECT_EQ(values(graph, "layer1.0.bn1.running_mean"), std::vector<float>(16, 0.5f));
  EXPECT_TRUE(graph.find_value("layer2.0.conv1.weight")->trainable);
  EXPECT_EQ(complaint(report), "");
}

TEST(LoadWeightsTest, MissingWeightsKeepTheirStart) {
  ir::Graph graph = network(1);
  const ir::Graph before = network(1);
  checkpoint::NamedTensors file = file_of(network(2));
  file.erase("fc.weight");
  file["head.weight"] = ir::Tensor::scalar<float>(1);
  const WeightReport report = load_weights(graph, file);
  EXPECT_EQ(report.count(State::kMissing), 1);
  EXPECT_THAT(report.unused, ElementsAre("head.weight"));
  EXPECT_EQ(values(graph, "fc.weight"), values(before, "fc.weight"));
  EXPECT_EQ(complaint(report), "");
}

// TAO skips them and says so in a log: 94 % become 0, and nobody knows why.
TEST(LoadWeightsTest, OtherShapesAreAnError) {
  ir::Graph graph = network(1, 10);
  const ir::Graph before = network(1, 10);
  const WeightReport report = load_weights(graph, file_of(network(2, 7)));
  EXPECT_EQ(report.count(State::kMismatched), 2);
  EXPECT_EQ(values(graph, "fc.weight"), values(before, "fc.weight"));
  EXPECT_THAT(
      complaint(report),
      AllOf(HasSubstr("m.onnx: 2 of "), HasSubstr("fc.weight is [7, 64] in the file and [10, 64] in the network"),
            HasSubstr("model.load_graph: true"), HasSubstr("model.allow_loaded_model_modification: true")));
  EXPECT_EQ(complaint(report, true), "");
}

TEST(LoadWeightsTest, NothingLoadedIsAnErrorWhateverIsAllowed) {
  ir::Graph graph = network(1);
  const WeightReport report = load_weights(graph, {{"block_1a_conv_1.weight", ir::Tensor::scalar<float>(1)}});
  for (const bool allow : {false, true})
    EXPECT_THAT(complaint(report, allow),
                AllOf(HasSubstr("m.onnx: holds no weight of the network: its names are block_1a_conv_1.weight"),
                      HasSubstr("conv1.weight"), HasSubstr("model.layout")));
}

// The weights of an exported network have its normalizations in them: beside fresh ones they are another network.
TEST(LoadWeightsTest, FoldedBatchNormsAreAnError) {
  ir::Graph graph = network(1);
  checkpoint::NamedTensors file;
  for (const auto& [name, tensor] : file_of(network(2)))
    if (name.find("bn") == std::string::npos && name.find("downsample.1") == std::string::npos) file[name] = tensor;
  for (const auto& node : graph.nodes())
    if (node->kind == ir::OpKind::kConv) file[node->name + ".bias"] = ir::Tensor::of<float>({1}, std::vector<float>{1});
  const WeightReport report = load_weights(graph, file);
  EXPECT_EQ(report.count(State::kFolded), 21);
  EXPECT_THAT(complaint(report), HasSubstr("its batch norms are folded into biases"));
  EXPECT_EQ(complaint(report, true), "");
}

}  // namespace
}  // namespace octet::weights
