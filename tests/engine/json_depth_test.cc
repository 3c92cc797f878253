#include "engine/json_depth.h"

#include <gtest/gtest.h>

#include <ctime>

#include "engine/plan_json.h"
#include "support/sanitized.h"

namespace octet::engine {
namespace {

TEST(JsonDepth, CountsWhatLiesWithinEachOther) {
  EXPECT_EQ(json_depth(""), 0);
  EXPECT_EQ(json_depth("12"), 0);
  EXPECT_EQ(json_depth("[1, 2]"), 1);
  EXPECT_EQ(json_depth(R"([{}, [], {"a": 1}])"), 2);
  EXPECT_EQ(json_depth(R"({"a": {"b": [[]]}, "c": []})"), 4);
}

TEST(JsonDepth, LeavesTextsOut) {
  EXPECT_EQ(json_depth(R"({"[[[": "{{{"})"), 1);
  EXPECT_EQ(json_depth(R"(["\"[[", [], "\\", []])"), 2);
  EXPECT_EQ(json_depth(R"(["\\\"[")"), 1);
  EXPECT_EQ(json_depth("[\"\\"), 1);  // ends within an escape
}

std::string refusal(const std::string& text) {
  try {
    plan_from_json(text);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "taken";
}

TEST(JsonDepth, OfAPlanIsLimited) {
  const std::string expected = "the plan is nested too deeply";
  EXPECT_EQ(refusal(std::string(1 << 20, '[')), expected);
  EXPECT_EQ(refusal(R"({"name": )" + std::string(16, '[') + std::string(16, ']') + "}"), expected);
  EXPECT_NE(refusal(R"({"name": )" + std::string(15, '[') + std::string(15, ']') + "}"), expected);
}

// Three seconds; by the square of the steps it was a minute. A hostile file, or an unrolled network, has such plans.
TEST(PlanJson, IsReadInTimeInProportionToTheSteps) {
  constexpr int kSteps = octet::testing::kSanitized ? 20'000 : 200'000;
  Plan plan;
  plan.name = "many", plan.isa = "scalar";
  plan.steps.resize(
      kSteps, {.kind = "copy", .name = "y", .op = "Concat", .inputs = {0}, .outputs = {1}, .ints = {{"count", 4}}});
  const std::string text = plan_to_json(plan);
  const std::clock_t start = std::clock();
  EXPECT_EQ(plan_from_json(text).steps.size(), static_cast<size_t>(kSteps));
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 15);
}

}  // namespace
}  // namespace octet::engine
