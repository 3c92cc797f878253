// Trained weights as the start of a training: what fits, what does not, and that nothing of it is silent.
#include <gmock/gmock.h>

#include "checkpoint/safetensors.h"
#include "cli/network_files.h"
#include "models/zoo.h"
#include "onnx/import.h"

namespace octet::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

models::ModelOptions options() {
  return {.arch = "resnet20", .num_classes = 3, .input = {3, 8, 8}, .seed = 77};
}

class Pretrained : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (!IsSkipped()) write_images();
  }
  // One epoch at a rate that moves nothing.
  Outcome train(const std::string& more) const {
    return octet(
        "train -e spec.yaml -r r --force --set model.arch=resnet20 --set train.epochs=1 "
        "--set train.optimizer.lr=1e-12 --set train.optimizer.weight_decay=0 " +
        more);
  }
  std::vector<float> trained(const std::string& name) const {
    return onnx::import_model(folder_ + "/r/model.onnx").find_value(name)->constant->to_floats();
  }
  // The network's first convolution and what hangs on it, with half of the filters.
  ir::Graph pruned() const {
    ir::Graph g;
    ir::Value* x = g.add_input("input", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, 8, 8}});
    ir::Value* y = g.add(ir::OpKind::kConv, "conv1", {x, g.add_constant("conv1.weight", noise({8, 3, 3, 3}, 1), true)},
                         {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    y = g.add(ir::OpKind::kFlatten, "flat", {g.add(ir::OpKind::kGlobalAveragePool, "pool", {y})});
    y = g.add(ir::OpKind::kMatMul, "logits", {y, g.add_constant("fc.weight", noise({8, 3}, 2), true)});
    g.add_output(y);
    return g;
  }
};

TEST_F(Pretrained, WeightsOfASafetensorsFileAreTheStart) {
  const ir::Graph source = models::build_model(options());
  checkpoint::NamedTensors tensors;
  for (const ir::Value* v : source.constants())
    if (v->name.find("fc.") == std::string::npos) tensors[v->name] = *v->constant;
  write("w.safetensors", checkpoint::safetensors_bytes(tensors));
  const Outcome outcome = train("--set model.pretrained=w.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("loaded, 2 missing, 0 mismatched"), HasSubstr("fc.weight"),
                                 HasSubstr("missing: starts from random")));
  const std::vector<float> expected = source.find_value("layer3.1.conv2.weight")->constant->to_floats();
  const std::vector<float> actual = trained("layer3.1.conv2.weight");
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6);
}

TEST_F(Pretrained, OtherShapesAreRefusedUnlessAllowed) {
  models::ModelOptions other = options();
  other.num_classes = 7;
  save(models::build_model(other), "seven.onnx");
  const Outcome refused = train("--set model.pretrained=seven.onnx");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("fc.weight is [7, 64] in the file and [3, 64] in the network"),
                                 HasSubstr("allow_loaded_model_modification")));
  EXPECT_FALSE(exists("r/model.onnx"));
  const Outcome allowed = train("--set model.pretrained=seven.onnx --set model.allow_loaded_model_modification=true");
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  EXPECT_THAT(allowed.err, HasSubstr("mismatched: starts from random"));
}

// TAO loads a pruned network into the unpruned one, and nothing of it arrives.
TEST_F(Pretrained, PrunedNetworksNeedTheirGraph) {
  save(pruned(), "pruned.onnx");
  const Outcome refused = train("--set model.pretrained=pruned.onnx");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("set model.load_graph: true"));
  const Outcome loaded = train("--set model.pretrained=pruned.onnx --set model.load_graph=true");
  ASSERT_EQ(loaded.code, 0) << loaded.err;
  const std::vector<float> expected = noise({8, 3, 3, 3}, 1).to_floats(), actual = trained("conv1.weight");
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6);
}

TEST_F(Pretrained, AGraphComesFromOnnxAlone) {
  write("w.safetensors", checkpoint::safetensors_bytes({{"conv1.weight", noise({16, 3, 3, 3}, 1)}}));
  const Outcome outcome = train("--set model.pretrained=w.safetensors --set model.load_graph=true");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("w.safetensors: holds weights and no graph; name an ONNX file"));
}

TEST_F(Pretrained, EncryptedModelsSayWhatToDo) {
  write("m.tlt", std::string("\x01\x99\x03 ciphertext"));
  for (const char* more : {"", " --set model.load_graph=true"}) {
    const Outcome outcome = train(std::string("--set model.pretrained=m.tlt") + more);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("m.tlt: is an encrypted model of NVIDIA TAO"));
  }
}

TEST_F(Pretrained, FrozenBlocksStayAsTheyCame) {
  save(models::build_model(options()), "m.onnx");
  const auto moved = [&](const char* name) {
    const std::vector<float> before = onnx::import_model(folder_ + "/m.onnx").find_value(name)->constant->to_floats();
    return trained(name) != before;
  };
  const std::string rate = "--set train.optimizer.lr=0.1 --set model.pretrained=m.onnx ";
  ASSERT_EQ(train(rate + "--set 'model.freeze_blocks=[0, 1]'").code, 0);
  EXPECT_FALSE(moved("conv1.weight"));
  EXPECT_FALSE(moved("layer1.2.conv2.weight"));
  EXPECT_FALSE(moved("layer1.0.bn1.running_mean"));
  EXPECT_TRUE(moved("layer2.0.conv1.weight"));
  EXPECT_TRUE(moved("layer2.0.bn1.running_mean"));
  ASSERT_EQ(train(rate + "--set model.freeze_bn=true").code, 0);
  EXPECT_TRUE(moved("conv1.weight"));
  EXPECT_FALSE(moved("layer3.0.bn1.weight"));
  EXPECT_FALSE(moved("layer3.0.bn1.running_var"));
  const Outcome random = train("--set 'model.freeze_blocks=[0]'");
  EXPECT_EQ(random.code, 2);
  EXPECT_THAT(random.err, HasSubstr("would keep random weights"));
}

}  // namespace
}  // namespace octet::test
