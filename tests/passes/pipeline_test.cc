#include "passes/pipelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "ir/print.h"
#include "models/zoo.h"
#include "passes/block_builder.h"
#include "passes/evaluate.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(PipelineTest, PreparationKeepsTheFunction) {
  BlockBuilder b;
  auto* y = b.relu(b.bn(b.conv(b.x, "conv1", 4, 3), "bn1"), "relu1");
  y = b.op(OpKind::kDropout, "dropout", {b.bn(b.conv(y, "conv2", 4), "bn2")});
  b.graph.add_output(b.relu(b.add(y, b.x, "add"), "out"));
  const auto before = outputs_of(b.graph);
  ir::Graph training = b.graph.clone();
  const auto results = run_pipeline(b.graph, preparation_passes(false));
  // Folding rounds the weights of two convolutions to float32.
  EXPECT_LT(difference(outputs_of(b.graph), before), 64 * 0x1p-24);
  EXPECT_EQ(b.graph.nodes().size(), 5u);
  EXPECT_EQ(results.front().name, "remove_identity");
  EXPECT_EQ(results.front().changes, 1);
  run_pipeline(training, preparation_passes(true));
  EXPECT_NE(training.find_node("dropout"), nullptr);
}

TEST(PipelineTest, DumpsTheGraphAfterEveryPass) {
  const auto directory = std::filesystem::path(::testing::TempDir()) / "octet_pass_dumps";
  std::filesystem::remove_all(directory);
  BlockBuilder b;
  b.graph.add_output(b.bn(b.conv(b.x, "conv", 4), "bn"));
  const std::string before = ir::to_text(b.graph);
  run_pipeline(b.graph, {find_pass("fold_constants"), find_pass("fold_batch_norm")}, {.dump_directory = directory});
  EXPECT_EQ(read_file(directory / "00_input.txt"), before);
  EXPECT_EQ(read_file(directory / "01_fold_constants.txt"), before);
  EXPECT_EQ(read_file(directory / "02_fold_batch_norm.txt"), ir::to_text(b.graph));
  std::filesystem::remove_all(directory);
}

// The scales of a calibration come behind its images.
TEST(PipelineTest, DumpsOfOneStageGoOnWhereTheyWere) {
  const auto directory = std::filesystem::path(::testing::TempDir()) / "octet_pass_dumps_in_parts";
  std::filesystem::remove_all(directory);
  BlockBuilder b;
  b.graph.add_output(b.bn(b.conv(b.x, "conv", 4), "bn"));
  const std::string before = ir::to_text(b.graph);
  const size_t first = run_pipeline(b.graph, {find_pass("fold_constants")}, {.dump_directory = directory}).size();
  run_pipeline(b.graph, {find_pass("fold_batch_norm")}, {.dump_directory = directory, .passes_before = first});
  EXPECT_EQ(read_file(directory / "00_input.txt"), before);
  EXPECT_EQ(read_file(directory / "02_fold_batch_norm.txt"), ir::to_text(b.graph));
  EXPECT_NE(ir::to_text(b.graph), before);
  std::filesystem::remove_all(directory);
}

TEST(PipelineTest, ABrokenPassIsNamed) {
  BlockBuilder b;
  b.graph.add_output(b.relu(b.x, "relu"));
  const Pass breaks{"breaks", "", [](ir::Graph& g) {
                      g.find_node("relu")->attributes["alpha"] = 1.0f;
                      return 1;
                    }};
  EXPECT_THAT([&] { run_pipeline(b.graph, {breaks}); }, ThrowsMessage<InternalError>(HasSubstr("after pass breaks")));
}

// What was wrong before the first pass is said by those who read the graph.
TEST(PipelineTest, AGraphThatWasBrokenIsNoFaultOfAPass) {
  BlockBuilder b;
  b.graph.add_output(b.relu(b.x, "relu"));
  b.graph.find_node("relu")->attributes["alpha"] = 1.0f;
  EXPECT_EQ(run_pipeline(b.graph, {{"changes", "", [](ir::Graph&) { return 1; }}}).size(), 1u);
}

TEST(PipelineTest, StagesAreMadeOfPassesWithNames) {
  for (const Stage& stage : stages()) {
    EXPECT_FALSE(stage.passes.empty()) << stage.name;
    for (const Pass& pass : stage.passes) EXPECT_FALSE(pass.name.empty() || pass.description.empty()) << stage.name;
  }
}

TEST(PipelineTest, PassesHaveNamesAndDescriptions) {
  for (const Pass& pass : all_passes()) {
    EXPECT_EQ(&find_pass(pass.name), &pass);
    EXPECT_FALSE(pass.description.empty());
  }
  EXPECT_THAT([] { find_pass("fold_batchnorm"); },
              ThrowsMessage<UserError>(HasSubstr("did you mean 'fold_batch_norm'?")));
}

}  // namespace
}  // namespace octet::passes
