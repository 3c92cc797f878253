// octet train in each opt level, what it tells of it before, and what does not go together.
#include <gmock/gmock.h>

#include <cmath>

#include "cli/network_files.h"
#include "onnx/import.h"

namespace octet::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MixedPrecision : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (!IsSkipped()) write_images();
  }
  Outcome train(const std::string& more) const {
    return octet("train -e spec.yaml -r r --force --set model.arch=resnet20 --set train.epochs=1 " + more);
  }
  void expect_trained_network() const {
    const ir::Graph model = onnx::import_model(folder_ + "/r/model.onnx");
    for (const ir::Value* value : model.constants())
      if (value->constant->data_type() == ir::DataType::kFloat32) {
        for (const float x : value->constant->to_floats()) ASSERT_TRUE(std::isfinite(x)) << value->name;
      }
  }
};

TEST_F(MixedPrecision, FlagsNameTheTypeAndTheLossScale) {
  const Outcome fp16 = train("--fp16 --explain");
  ASSERT_EQ(fp16.code, 0) << fp16.err;
  EXPECT_THAT(fp16.out, HasSubstr("precision: fp16, cast_model false"));
  EXPECT_THAT(fp16.out, HasSubstr("loss_scale dynamic from 65536"));
  EXPECT_THAT(fp16.out, ::testing::ContainsRegex("conv1 +Conv +fp16 +fp32"));
  expect_trained_network();
  const Outcome scaled = train("--fp16 --loss_scale 128 --explain");
  ASSERT_EQ(scaled.code, 0) << scaled.err;
  EXPECT_THAT(scaled.out, HasSubstr("loss_scale 128"));
  const Outcome dynamic = train("--set train.precision=fp32 --loss_scale 0 --explain");
  ASSERT_EQ(dynamic.code, 0) << dynamic.err;
  EXPECT_THAT(dynamic.out, AllOf(HasSubstr("precision: fp32"), HasSubstr("loss_scale dynamic")));
}

TEST_F(MixedPrecision, EveryLevelTrainsAndSaysItsTypes) {
  const auto with = [&](const std::string& level, const std::string& more = "") {
    const Outcome o = train("--explain --set train.precision=auto --set train.amp.opt_level=" + level + more);
    EXPECT_EQ(o.code, 0) << level << ": " << o.err;
    expect_trained_network();
    return o.out;
  };
  EXPECT_THAT(with("O0"), ::testing::ContainsRegex("conv1 +Conv +fp32 +fp32"));
  EXPECT_THAT(with("O2"),
              AllOf(::testing::ContainsRegex("conv1 +Conv +fp16 +fp16"),
                    ::testing::ContainsRegex("BatchNormalization +fp16 +fp32"), HasSubstr("over float32 masters")));
  EXPECT_THAT(with("O3"), AllOf(::testing::ContainsRegex("BatchNormalization +fp16 +fp16"),
                                Not(HasSubstr("over float32 masters"))));
  EXPECT_THAT(with("O3", " --set train.amp.keep_batchnorm_fp32=true"),
              ::testing::ContainsRegex("BatchNormalization +fp16 +fp32"));
  EXPECT_THAT(with("O2", " --set train.precision=bf16"), ::testing::ContainsRegex("conv1 +Conv +bf16 +bf16"));
}

TEST_F(MixedPrecision, WhatDoesNotGoTogetherIsRefused) {
  for (const char* const wrong : {"--set train.amp.opt_level=O1 --set train.amp.keep_batchnorm_fp32=true",
                                  "--set train.amp.opt_level=O0 --set train.precision=fp16",
                                  "--set train.amp.opt_level=O2 --set train.precision=fp32", "--loss_scale lots",
                                  "--fp16 --use_amp", "--loss_scale 8 --set train.cost_scaling.enabled=true"}) {
    const Outcome o = train(wrong);
    EXPECT_EQ(o.code, 2) << wrong << ": " << o.err;
    EXPECT_FALSE(exists("r/model.onnx"));
  }
}

}  // namespace
}  // namespace octet::test
