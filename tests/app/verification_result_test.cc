// The proof that an engine computes its model is the codes; on how many images both say the same is chance.
#include "app/verification_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octet::app {
namespace {

using ::testing::HasSubstr;

// 998 of 1,000 images agree, and both differences are ties.
Verification two_ties() {
  Verification v;
  v.predicts = true;
  v.images = 1000;
  v.agree = 998;
  v.tensor_images = 202;
  v.mismatches = {{7, "class 3 (0.41)", "class 5 (0.41)", 1}, {9, "class 1 (0.33)", "class 2 (0.33)", 1}};
  v.tensors = {{.tensor = "relu", .elements = 100000, .different = 2, .ties = 2, .violations = 0, .largest_step = 1}};
  v.scores = {{.output = "logits", .elements = 2020, .largest_difference = 1e-7, .float_error = 1e-7, .magnitude = 1}};
  return v;
}

TEST(Verification, HoldsWhereEveryCodeIsRightOrATie) {
  EXPECT_EQ(two_ties().objection(), "");
  EXPECT_THAT(two_ties().objection(0.999),
              HasSubstr("agree on 998 of 1000 images, 99.8 %, and --agreement asks for 99.9 %"));
  EXPECT_EQ(two_ties().objection(0.998), "");
}

TEST(Verification, FailsWithTheConditionThatDoesNotHold) {
  Verification v = two_ties();
  v.tensors[0].violations = 1;
  EXPECT_EQ(v.objection(), "1 codes are wrong");
  v = two_ties();
  v.scores[0].largest_difference = 0.1;
  EXPECT_THAT(v.objection(), HasSubstr("output 'logits' differs from the model's by 0.1"));
  v = two_ties();
  v.tensors[0].place = TensorPlace::kMissing;
  v.tensors.push_back({.tensor = "other"});
  EXPECT_THAT(v.objection(), HasSubstr("are not in the engine, 'relu' among them"));
}

// Nothing but their elements can be held against each other.
TEST(Verification, OneElementBehindAnArgMaxMayBeATie) {
  Verification v = two_ties();
  v.scores = {{.output = "mask", .elements = 50, .discrete = true, .different = 1}};
  EXPECT_EQ(v.objection(), "");
  EXPECT_THAT(v.objection(0.999), HasSubstr("output 'mask' differs in 1 of 50 elements"));
  v.scores[0].different = 2;
  EXPECT_THAT(v.objection(), HasSubstr("output 'mask' differs in 2 of 50 elements"));
}

}  // namespace
}  // namespace octet::app
