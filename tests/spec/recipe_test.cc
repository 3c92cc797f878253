// Key `recipe`, and keys of `quant` that changed their form.
#include "spec/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "spec/experiment.h"

namespace octet::spec {
namespace {

ExperimentSpec parsed(const std::string& text, std::vector<std::string> overrides = {}) {
  return parse_experiment(text, "s.yaml", {.overrides = std::move(overrides), .check_files = false});
}

TEST(Recipe, SetsDefaultsOfOtherKeys) {
  const std::string train = "train: {epochs: 20, optimizer: {lr: 0.2}}\n";
  const ExperimentSpec plain = parsed(train);
  EXPECT_EQ(to_yaml(parsed("recipe: int8\n" + train)), to_yaml(plain));

  const ExperimentSpec swish = parsed("recipe: efficientnet\n" + train);
  EXPECT_EQ(swish.quant.qat_mode, quant::QatMode::kWithBn);
  EXPECT_EQ(swish.quant.placement.asymmetric_activations, true);
  EXPECT_EQ(swish.finetune.epochs, 6);
  EXPECT_DOUBLE_EQ(swish.finetune.optimizer.lr, 0.06);
  EXPECT_EQ(swish.train.epochs, 20);

  const ExperimentSpec few = parsed(train + "finetune: {epochs: 3}\nquant: {activations: {bits: 6}}\nrecipe: w4a4\n",
                                    {"quant.weights.learned=no"});
  EXPECT_EQ(few.quant.placement.weight_bits, 4);
  EXPECT_EQ(few.quant.placement.activation_bits, 6) << "what is said counts more";
  EXPECT_EQ(few.finetune.epochs, 3);
  EXPECT_EQ(few.quant.training.activations, quant::ScaleGradient::kLsq);
  EXPECT_EQ(few.quant.training.weights, quant::ScaleGradient::kNo);

  // What was chosen against a recipe is still that in the experiment that is written.
  const ExperimentSpec against = parsed("recipe: efficientnet\nquant: {qat_mode: fuse_bn}\n");
  for (const ExperimentSpec* spec : {&swish, &few, &against}) {
    const std::string written = to_yaml(*spec);
    EXPECT_EQ(to_yaml(parsed(written)), written);
    EXPECT_EQ(spec_hash(parsed(written)), spec_hash(*spec));
  }
  EXPECT_THAT([] { parsed("recipe: swish\n"); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("efficientnet")));
}

TEST(QuantKeys, BiasCorrectionHasAWordForEachWayAndTheOldFlags) {
  const auto found = [](const std::string& word) {
    return parsed("quant: {bias_correction: " + word + "}\n").quant.bias_correction;
  };
  for (const char* word : {"true", "empirical"}) EXPECT_EQ(found(word), quant::BiasCorrection::kEmpirical);
  for (const char* word : {"false", "no"}) EXPECT_EQ(found(word), quant::BiasCorrection::kNo);
  EXPECT_EQ(found("analytic"), quant::BiasCorrection::kAnalytic);
  EXPECT_THAT([] { parsed("quant: {bias_correction: analytic, gptq: {images: 9}}\n"); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("gptq")));
  EXPECT_THAT([] { parsed("quant: {adaround: {iterations: 9}, gptq: {images: 9}}\n"); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("leave one of them out")));
  EXPECT_THAT([] { parsed("quant: {bias_correction: analytic, adaround: {iterations: 9}}\n"); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("adaround")));
}

}  // namespace
}  // namespace octet::spec
