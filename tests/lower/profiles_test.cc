// Several sizes in one engine: same results as of engines of their own, weights there once.
#include "engine/profiles.h"

#include "base/error.h"
#include "engine/engine_file.h"
#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;

void build(QuantNet& net) {
  ir::Value* x = net.fq(net.input({ir::kDynamic, 16, ir::kDynamic, ir::kDynamic}), 0.01f);
  x = net.fq(net.relu(net.conv(x, 16, 64, 3, {.pad = 1})), 0.02f, true);
  x = net.fq(net.op(ir::OpKind::kGlobalAveragePool, {net.conv(x, 64, 32, 1)}), 0.02f);
  net.finish({x});
}

engine::Plan compiled(const ir::Graph& graph, const std::vector<int64_t>& shape) {
  return lower::lower(graph, {.input_shape = shape});
}

TEST(Profiles, ShareConstantsAndGiveTheSameResults) {
  QuantNet net(61);
  build(net);
  const std::vector<std::vector<int64_t>> shapes = {{1, 16, 8, 8}, {4, 16, 8, 8}, {1, 16, 12, 10}};
  std::vector<engine::Plan> plans;
  for (const auto& shape : shapes) plans.push_back(compiled(net.graph, shape));
  const size_t one = plans[0].constants->bytes().size();
  const std::string bytes = engine::engine_file_bytes(engine::merge_profiles(std::move(plans)));
  const auto plan = engine::parse_engine(std::as_bytes(std::span<const char>(bytes)), "file");
  EXPECT_EQ(plan->constants->bytes().size(), one);
  EXPECT_EQ(engine::profile_list(*plan), "1x16x8x8, 4x16x8x8, 1x16x12x10");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto own = std::make_shared<const engine::Plan>(compiled(net.graph, shapes[i]));
    const std::map<std::string, Array> inputs = {
        {"x", {shapes[i], Random(i).values(ir::element_count(shapes[i]), -1, 1)}}};
    const auto expected = run_plan(own, inputs, default_isa(), 1);
    const auto run = run_plan(engine::profile_of(plan, static_cast<int>(i)), inputs, default_isa(), 2);
    for (const auto& [name, array] : expected.outputs) EXPECT_EQ(array.data, run.outputs.at(name).data) << i;
  }
}

TEST(Profiles, WhatDoesNotFitIsRefused) {
  QuantNet net(62);
  build(net);
  const auto error_of = [](auto work) -> std::string {
    try {
      work();
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error_of([&] {
                compiled(net.graph, {1, 3, 8, 8});
              }),
              HasSubstr("[1, 3, 8, 8] does not fit the input 'x'"));
  EXPECT_THAT(error_of([&] {
                std::vector<engine::Plan> twice;
                twice.push_back(compiled(net.graph, {1, 16, 8, 8}));
                twice.push_back(compiled(net.graph, {1, 16, 8, 8}));
                engine::merge_profiles(std::move(twice));
              }),
              HasSubstr("1x16x8x8 is there twice"));
  std::vector<engine::Plan> plans;
  plans.push_back(compiled(net.graph, {1, 16, 8, 8}));
  plans.push_back(compiled(net.graph, {2, 16, 8, 8}));
  auto merged = engine::merge_profiles(std::move(plans));
  const auto plan = std::make_shared<const engine::Plan>(merged);
  EXPECT_THAT(error_of([&] { engine::profile_of(plan, 2); }), HasSubstr("there is no profile 2; the engine has 2"));
  merged.profiles[0].buffers[static_cast<size_t>(merged.profiles[0].inputs[0])].name = "other";
  const std::string bytes = engine::engine_file_bytes(merged);
  EXPECT_THAT(error_of([&] { engine::parse_engine(std::as_bytes(std::span<const char>(bytes)), "f"); }),
              HasSubstr("other inputs or outputs"));
}

}  // namespace
}  // namespace octet::testing
