#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <octet/engine.h>

#include <filesystem>

#include "engine/engine_file.h"
#include "engine/engine_test_util.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;

class Api : public ::testing::Test {
 protected:
  void SetUp() override { engine::save_engine(small_plan(), path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("octet_api_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".octet");
};

TEST_F(Api, LoadsDescribesAndRuns) {
  const Engine engine = Engine::load(path_.string());
  ASSERT_EQ(engine.inputs().size(), 1u);
  EXPECT_EQ(engine.inputs()[0].name, "x");
  EXPECT_EQ(engine.inputs()[0].shape, (std::vector<int64_t>{1, 3, 6, 5}));
  EXPECT_EQ(engine.outputs()[0].size(), 120);
  Context context = engine.create_context({.threads = 2, .isa = "scalar"});
  EXPECT_EQ(context.threads(), 2);
  std::vector<float> y;
  context.run(ramp(90), y);
  EXPECT_EQ(y, run(std::make_shared<const engine::Plan>(small_plan())));
}

TEST_F(Api, ReportsLayersAndTimes) {
  const Engine engine = Engine::load(path_.string());
  const auto layers = engine.layers("scalar");
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[1].op, "Conv+Relu");
  EXPECT_EQ(layers[1].precision, "int8");
  EXPECT_EQ(layers[1].kernel, "conv scalar");
  Context context = engine.create_context();
  const std::vector<float> x = ramp(90);
  std::vector<float> y(120);
  for (const LayerReport& l : context.profile({x.data()}, {y.data()}, 3)) EXPECT_GT(l.microseconds, 0) << l.name;
}

TEST_F(Api, ErrorsAreSentences) {
  const auto error = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error([] { Engine::load("/nonexistent.octet"); }), HasSubstr("/nonexistent.octet"));
  const Engine engine = Engine::load(path_.string());
  EXPECT_THAT(error([&] { engine.create_context({.isa = "sse9"}); }), HasSubstr("unknown instruction set 'sse9'"));
  Context context = engine.create_context();
  std::vector<float> y;
  EXPECT_THAT(error([&] { context.run(std::vector<float>(7), y); }), HasSubstr("7 elements; the engine expects 90"));
  EXPECT_THAT(error([&] { context.run({}, {y.data()}); }), HasSubstr("0 inputs"));
}

}  // namespace
}  // namespace octet::testing
