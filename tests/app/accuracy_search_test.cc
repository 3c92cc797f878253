#include "app/accuracy_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octet::app {
namespace {

using ::testing::ElementsAre;

// A network of ten layers of which each loses what it loses, as a formula over the options.
struct PretendModel {
  std::vector<double> losses = {5, 3, 0.6, 0.4, 0.1, 0.1, 0, 0, 0, 0};  // in the order of the ranking
  double equalized = 0, corrected = 0, rounded = 0;                     // what the boosters give back
  double gptq_harms = 0;                                                // beside `rounded`
  bool lower_is_better = false;

  AccuracyTools tools() {
    return {.quantize =
                [](const quant::QuantOptions& options) {
                  ir::Graph g;
                  g.metadata["float"] = std::to_string(options.placement.exclude.size());
                  g.metadata["equalize"] = options.equalize == quant::Equalization::kExact ? "1" : "0";
                  g.metadata["correct"] = options.bias_correction == quant::BiasCorrection::kEmpirical ? "1" : "0";
                  g.metadata["round"] = options.rounds_by_results() ? "1" : "0";
                  g.metadata["gptq"] = options.gptq.images > 0 ? "1" : "0";
                  return g;
                },
            .quantize_as = {},
            .measure =
                [this](const ir::Graph& g) {
                  double lost = 0;
                  size_t in_float = losses.size();
                  if (g.metadata.count("float")) {
                    in_float = std::stoul(g.metadata.at("float"));
                    lost -= equalized * std::stoi(g.metadata.at("equalize")) +
                            corrected * std::stoi(g.metadata.at("correct")) +
                            rounded * std::stoi(g.metadata.at("round")) - gptq_harms * std::stoi(g.metadata.at("gptq"));
                  }
                  for (size_t i = in_float; i < losses.size(); ++i) lost += losses[i];
                  if (in_float == losses.size()) lost = 0;
                  return Measured{lower_is_better ? 10 + lost : 90 - lost, 1.0 + static_cast<double>(in_float),
                                  100 + 20 * static_cast<int64_t>(in_float)};
                },
            .rank = [](const ir::Graph&) -> std::vector<std::string> {
              return {"a[1]", "b*", "c", "d", "e", "f", "g", "h", "i", "j"};
            },
            .progress = {}};
  }
};

std::vector<std::string> tried(const AccuracySearch& search) {
  std::vector<std::string> out;
  for (const AccuracyStep& step : search.steps) out.push_back(step.what + (step.kept ? "" : " (not kept)"));
  return out;
}

TEST(AccuracySearch, EndsWhereTheBarHolds) {
  PretendModel model;
  model.losses = {0.2, 0.1};
  const AccuracySearch plain = search_accuracy({}, {}, {.drop = 0.5}, true, model.tools());
  EXPECT_THAT(tried(plain), ElementsAre("calibrated"));
  EXPECT_TRUE(plain.holds);
  EXPECT_NEAR(plain.lost(), 0.3, 1e-9);
}

TEST(AccuracySearch, TakesTheMethodThatScoresBest) {
  PretendModel model;
  model.losses = {2};
  AccuracyTools tools = model.tools();
  const auto quantize = tools.quantize;
  const auto measure = tools.measure;
  tools.quantize = [&](const quant::QuantOptions& options) {
    ir::Graph g = quantize(options);
    g.metadata["method"] = schema::enum_name(options.calibration.method);
    return g;
  };
  tools.measure = [&](const ir::Graph& g) {
    Measured out = measure(g);
    if (g.metadata.count("method"))
      out.score += g.metadata.at("method") == "entropy" ? 1 : g.metadata.at("method") == "mix" ? 1.5 : 0;
    return out;
  };
  const AccuracySearch search = search_accuracy({}, {}, {.methods = true}, true, tools);
  EXPECT_THAT(tried(search),
              ElementsAre("quant.calibration.method: mse", "quant.calibration.method: max (not kept)",
                          "quant.calibration.method: percentile (not kept)", "quant.calibration.method: entropy",
                          "quant.calibration.method: mix", "quant.calibration.method: ema (not kept)"));
  EXPECT_EQ(search.options.calibration.method, quant::CalibrationMethod::kMix);
  EXPECT_TRUE(search.holds);
  EXPECT_NEAR(search.lost(), 0.5, 1e-9);
  // A bar goes on from there.
  model.corrected = 1;
  EXPECT_THAT(tried(search_accuracy({}, {}, {.drop = 0, .methods = true}, true, tools)),
              ::testing::Contains("quant.bias_correction: empirical"));
}

TEST(AccuracySearch, TakesBoostersThatHelp) {
  PretendModel model;
  model.losses = {2};
  model.equalized = -1;  // harms
  model.corrected = 1.6;
  const AccuracySearch search = search_accuracy({}, {}, {.drop = 0.5}, true, model.tools());
  EXPECT_THAT(tried(search),
              ElementsAre("calibrated", "quant.equalize: exact (not kept)", "quant.bias_correction: empirical"));
  EXPECT_TRUE(search.holds);
  EXPECT_EQ(search.options.bias_correction, quant::BiasCorrection::kEmpirical);
  EXPECT_EQ(search.options.equalize, quant::Equalization::kNo);
  EXPECT_EQ(search.graph.metadata.at("correct"), "1");
  // What the options have already is not tried.
  const AccuracySearch again = search_accuracy({}, search.options, {.drop = 0.1}, true, model.tools());
  EXPECT_THAT(tried(again), ::testing::Not(::testing::Contains(::testing::HasSubstr("bias_correction"))));
}

TEST(AccuracySearch, TakesMinutesForRoundingOnlyWhereSecondsDoNotHelp) {
  PretendModel model;
  model.losses = {2};
  model.rounded = 1.6;
  const AccuracySearch quick = search_accuracy({}, {}, {.drop = 0.5}, true, model.tools());
  EXPECT_EQ(tried(quick).back(), "quant.gptq: {images: 500}");
  EXPECT_EQ(quick.options.gptq.images, 500);
  model.gptq_harms = 3;
  const AccuracySearch slow = search_accuracy({}, {}, {.drop = 0.5}, true, model.tools());
  EXPECT_THAT(tried(slow), ElementsAre("calibrated", "quant.equalize: exact (not kept)",
                                       "quant.bias_correction: empirical (not kept)",
                                       "quant.gptq: {images: 500} (not kept)", "quant.adaround: {iterations: 1000}"));
  EXPECT_EQ(slow.options.gptq.images, 0);
  // Analytic bias correction, which a spec cannot have beside them, stays without.
  quant::QuantOptions analytic;
  analytic.bias_correction = quant::BiasCorrection::kAnalytic;
  const AccuracySearch without = search_accuracy({}, analytic, {.drop = 0.5}, true, model.tools());
  EXPECT_THAT(tried(without), ::testing::Each(::testing::Not(::testing::HasSubstr("round"))));
  EXPECT_THAT(tried(without), ::testing::Each(::testing::Not(::testing::HasSubstr("gptq"))));
  EXPECT_EQ(slow.options.adaround.iterations, 1000);
}

TEST(AccuracySearch, LeavesAsFewLayersInFloatAsWillDo) {
  for (const bool lower : {false, true}) {
    PretendModel model;
    model.lower_is_better = lower;
    const AccuracySearch search = search_accuracy({}, {}, {.drop = 0.5}, !lower, model.tools());
    EXPECT_TRUE(search.holds);
    EXPECT_NEAR(search.lost(), 0.2, 1e-9);  // four: 5, 3, 0.6 and 0.4 are gone
    ASSERT_EQ(search.options.placement.exclude.size(), 4u);
    EXPECT_EQ(search.options.placement.exclude[0].name, "a\\[1]");
    EXPECT_EQ(search.options.placement.exclude[1].name, "b\\*");
    EXPECT_EQ(search.ms, 5);
    EXPECT_THAT(tried(search), ::testing::Contains("3 layers in float (not kept)"));
    EXPECT_THAT(tried(search), ::testing::Contains("4 layers in float"));
  }
}

// Of weights that adaptive rounding put on their grid no error is to be seen: layers are ranked without it.
TEST(AccuracySearch, RanksLayersBeforeTheirWeightsAreRounded) {
  PretendModel model;
  model.rounded = 0.1;
  AccuracyTools tools = model.tools();
  tools.quantize_as = [quantize = tools.quantize](const quant::QuantOptions& given, const ir::Graph&) {
    return quantize(given);
  };
  tools.rank = [rank = tools.rank](const ir::Graph& g) {
    EXPECT_EQ(g.metadata.at("round"), "0");
    EXPECT_EQ(g.metadata.at("correct"), "1");
    return rank(g);
  };
  quant::QuantOptions options;
  options.adaround.iterations = 1;
  options.bias_correction = quant::BiasCorrection::kEmpirical;
  const AccuracySearch search = search_accuracy({}, options, {.drop = 0.5}, true, tools);
  EXPECT_TRUE(search.holds);
  EXPECT_EQ(search.options.adaround.iterations, 1);
  EXPECT_EQ(search.graph.metadata.at("round"), "1");
}

// Rounding takes minutes: numbers of layers are tried with the weights of the network all in INT8, and what is found is
// rounded anew; where that misses the bar, one more layer stays in float.
TEST(AccuracySearch, RoundsAnewOnlyWhatItFinds) {
  PretendModel model;
  model.rounded = 0.05;
  double lucky = 0.3;  // what rounded weights give that were learned for another network
  AccuracyTools tools = model.tools();
  int rounded = 0;
  tools.quantize = [&, quantize = tools.quantize](const quant::QuantOptions& options) {
    rounded += options.rounds_by_results();
    return quantize(options);
  };
  tools.quantize_as = [quantize = model.tools().quantize](const quant::QuantOptions& options, const ir::Graph& from) {
    EXPECT_EQ(from.metadata.at("round"), "1");
    EXPECT_EQ(from.metadata.at("float"), "0");
    ir::Graph g = quantize(options);
    g.metadata["borrowed"] = "1";
    return g;
  };
  tools.measure = [&, measure = tools.measure](const ir::Graph& g) {
    Measured out = measure(g);
    if (g.metadata.count("borrowed")) out.score += lucky;
    return out;
  };
  const AccuracySearch search = search_accuracy({}, {}, {.drop = 0.5}, true, tools);
  // 3 layers lose 0.6 - 0.05 - 0.3, and without luck more than 0.5; 4 lose 0.2 - 0.05.
  EXPECT_THAT(tried(search),
              ::testing::IsSupersetOf({"3 layers in float (not kept)", "3 layers in float, rounded anew (not kept)",
                                       "4 layers in float, rounded anew"}));
  EXPECT_TRUE(search.holds);
  EXPECT_EQ(search.options.placement.exclude.size(), 4u);
  EXPECT_EQ(search.graph.metadata.count("borrowed"), 0u);
  EXPECT_EQ(rounded, 3);
}

TEST(AccuracySearch, UsesABudgetForTheLayersThatLoseMost) {
  const std::pair<SearchBounds, size_t> budgets[] = {
      {{.ms = 4.5}, 3}, {{.bytes = 145}, 2}, {{.ms = 4.5, .bytes = 145}, 2}, {{.ms = 1}, 0}, {{.ms = 100}, 6}};
  for (const auto& [bounds, in_float] : budgets)
    for (const bool lower : {false, true}) {
      PretendModel model;
      model.lower_is_better = lower;
      const AccuracySearch search = search_accuracy({}, {}, bounds, !lower, model.tools());
      EXPECT_TRUE(search.holds);
      if (in_float < 6) {
        EXPECT_EQ(search.options.placement.exclude.size(), in_float);
        EXPECT_EQ(search.ms, 1 + static_cast<double>(in_float));
        EXPECT_EQ(search.bytes, 100 + 20 * static_cast<int64_t>(in_float));
      } else {
        EXPECT_EQ(search.lost(), 0) << "more than six gain nothing";
      }
    }
}

TEST(AccuracySearch, ABudgetIsNotUsedWhereNothingIsLost) {
  PretendModel model;
  model.losses = std::vector<double>(10, 0);
  EXPECT_THAT(tried(search_accuracy({}, {}, {.ms = 100}, true, model.tools())), ElementsAre("calibrated"));
}

TEST(AccuracySearch, SaysWhereEverythingInInt8IsBeyondTheBudget) {
  PretendModel model;
  const AccuracySearch search = search_accuracy({}, {}, {.ms = 0.5}, true, model.tools());
  EXPECT_FALSE(search.holds);
  EXPECT_EQ(search.ms, 1);
  EXPECT_THAT(tried(search), ElementsAre("calibrated")) << "no booster makes it faster";
}

TEST(AccuracySearch, ABarAndABudgetBothCount) {
  PretendModel model;
  const AccuracySearch both = search_accuracy({}, {}, {.drop = 0.5, .ms = 5}, true, model.tools());
  EXPECT_TRUE(both.holds);
  EXPECT_EQ(both.options.placement.exclude.size(), 4u);
  const AccuracySearch slow = search_accuracy({}, {}, {.drop = 0.5, .ms = 4.9}, true, model.tools());
  EXPECT_FALSE(slow.holds) << "accurate, and too slow";
  EXPECT_EQ(slow.ms, 5);
}

TEST(AccuracySearch, SaysWhereTheBarDoesNotHold) {
  PretendModel model;
  const AccuracySearch search = search_accuracy({}, {}, {.drop = -1}, true, model.tools());
  EXPECT_FALSE(search.holds);
  EXPECT_EQ(search.lost(), 0);  // nine in float: the best that there is
  EXPECT_LT(search.options.placement.exclude.size(), 10u);
}

}  // namespace
}  // namespace octet::app
