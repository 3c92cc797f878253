// What a Concat joins stays codes where its quantizer could not do all the rounding: one scale with what others read.
#include <gtest/gtest.h>

#include "passes/block_builder.h"
#include "passes/place_fake_quant.h"
#include "passes/planned_text.h"

namespace octet::passes {
namespace {

using ir::OpKind;

ir::Value* concat(BlockBuilder& b, const std::string& name, std::vector<ir::Value*> parts) {
  return b.op(OpKind::kConcat, name, std::move(parts), {{"axis", int64_t{1}}});
}

// C2f of YOLOv8: half of a tensor goes through a bottleneck, and all that came up is joined.
TEST(ConcatPlacementTest, WhatWasSplitOffIsQuantizedWhole) {
  BlockBuilder b;
  auto* whole = b.silu(b.conv(b.x, "cv1", 8), "whole");
  const ir::Node* split = b.graph.add_node(OpKind::kSplit, "split", {whole}, {"left", "right"},
                                           {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}});
  ir::infer_node(*b.graph.find_node("split"));
  auto* made = b.silu(b.conv(split->output(1), "m.cv1", 4, 3), "made");
  b.graph.add_output(b.conv(concat(b, "joined", {split->output(0), split->output(1), made}), "cv2", 8));
  EXPECT_EQ(activations(b.graph),
            "input  s8 per tensor  -> Conv 'cv1'\n"
            "right  s8 per tensor scale of 'joined'  -> Conv 'm.cv1'\n"
            "joined  s8 per tensor scale of 'joined'  -> Conv 'cv2'\n"
            "whole  s8 per tensor scale of 'joined'  -> Split 'split'\n");
}

// A level of a feature pyramid is read by the next level of the network and by the Concat.
TEST(ConcatPlacementTest, WhatALayerReadsTooHasTheScaleOfTheConcat) {
  BlockBuilder b;
  auto* level = b.relu(b.conv(b.x, "level", 4), "p4");
  auto* deep = b.relu(b.conv(level, "deeper", 4), "p5");
  auto* scales = b.graph.add_constant("scales", ir::Tensor::of<float>({4}, std::vector<float>{1, 1, 1, 1}));
  auto* up = b.op(OpKind::kResize, "up", {deep, nullptr, scales}, {{"mode", std::string("nearest")}});
  auto* joined = concat(b, "joined", {up, level});
  b.graph.add_output(b.conv(joined, "out", 4));
  b.graph.add_output(b.conv(concat(b, "joined2", {b.conv(joined, "down", 4), deep}), "out2", 4));
  EXPECT_EQ(activations(b.graph),
            "input  s8 per tensor  -> Conv 'level'\n"
            "p4  s8 per tensor scale of 'joined'  -> Conv 'deeper', Concat 'joined'\n"
            "joined  s8 per tensor scale of 'joined'  -> Conv 'out', Conv 'down'\n"
            "joined2  s8 per tensor scale of 'joined'  -> Conv 'out2'\n"
            "p5  s8 per tensor scale of 'joined'  -> Concat 'joined2', Resize 'up'\n");
}

TEST(ConcatPlacementTest, WhatOnlyTheConcatReadsIsRoundedByItsQuantizer) {
  BlockBuilder b;
  auto* x = b.relu(b.x, "relu");
  auto* parts = concat(b, "joined", {b.relu(b.conv(x, "a", 4), "a1"), b.relu(b.conv(x, "b", 4, 3), "b1")});
  b.graph.add_output(b.conv(parts, "out", 4));
  EXPECT_EQ(activations(b.graph),
            "relu  s8 per tensor  -> Conv 'a', Conv 'b'\n"
            "joined  s8 per tensor  -> Conv 'out'\n");
}

TEST(ConcatPlacementTest, InceptionBranchesShareOneQuantizerAndConcatsMayShareScales) {
  BlockBuilder b;
  auto* x = b.relu(b.x, "relu");
  auto* a = b.relu(b.conv(x, "conv1", 4), "a");
  auto* pool = b.op(OpKind::kMaxPool, "pool", {x},
                    {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  auto* concat = b.op(OpKind::kConcat, "concat", {a, pool}, {{"axis", int64_t{1}}});
  b.graph.add_output(b.conv(concat, "conv2", 4));
  const std::string separate =
      "relu  s8 per tensor  -> Conv 'conv1', MaxPool 'pool'\n"
      "concat  s8 per tensor  -> Conv 'conv2'\n";
  EXPECT_EQ(activations(b.graph, {.rules = {quant::PlacementRule::kInception}}), separate);
  EXPECT_EQ(activations(b.graph), separate);
  EXPECT_EQ(activations(b.graph, {.unify_concat = true}),
            "relu  s8 per tensor  -> Conv 'conv1', MaxPool 'pool'\n"
            "concat  s8 per tensor scale of 'concat'  -> Conv 'conv2'\n"
            "a  s8 per tensor scale of 'concat'  -> Concat 'concat'\n"
            "pool  s8 per tensor scale of 'concat'  -> Concat 'concat'\n");
}

}  // namespace
}  // namespace octet::passes
