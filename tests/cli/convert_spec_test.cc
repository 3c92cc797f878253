// octet convert spec, and specifications of TAO in other commands.
#include <gmock/gmock.h>

#include "cli/program_fixture.h"

namespace {

using octet::test::Cli;
using octet::test::Outcome;
using testing::HasSubstr;
using testing::Not;

class ConvertSpec : public Cli {
 protected:
  const std::string whole = OCTET_SOURCE_DIR "/tests/spec/specifications/detectnet_v2_retrain_qat.txt";
};

TEST_F(ConvertSpec, TextBecomesYamlAndTextAgain) {
  Outcome outcome = octet("convert spec " + whole + " -o a.yaml");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("'evaluation_config.first_validation_epoch' is not used: "));
  EXPECT_THAT(read("a.yaml"), HasSubstr("#   evaluation_config.first_validation_epoch: "));
  EXPECT_THAT(read("a.yaml"), HasSubstr("\n  input: [3, 544, 960]\n"));

  outcome = octet("convert spec a.yaml -o b.txt --stage qat");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("cannot say")));
  EXPECT_THAT(read("b.txt"), HasSubstr("  enable_qat: true\n"));
  EXPECT_THAT(read("b.txt"), HasSubstr("source_class_names: \"dontcare\"\n"));

  outcome = octet("convert spec b.txt -o c.yaml");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  outcome = octet("convert spec c.yaml -o d.txt --stage qat");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read("d.txt"), read("b.txt"));
}

TEST_F(ConvertSpec, NamesWhatTaoCannotSay) {
  write("a.yaml", "task: detectnet_v2\ntrain: {clip_grad_norm: 3}\n");
  const Outcome outcome = octet("convert spec a.yaml -o a.txt");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("a.yaml: 'train.clip_grad_norm' is 3, which TAO's specification cannot say"));
}

TEST_F(ConvertSpec, ReplacesNothingUnasked) {
  write("a.txt", "training_config {\n  num_epochs: 3\n}\n");
  write("b.yaml", "mine");
  Outcome outcome = octet("convert spec a.txt -o b.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--force"));
  EXPECT_EQ(read("b.yaml"), "mine");
  outcome = octet("convert spec a.txt -o b.yaml --force");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(read("b.yaml"), HasSubstr("epochs: 3\n"));
}

TEST_F(ConvertSpec, MistakesLeaveNothingBehind) {
  write("a.txt", "training_config {\n  num_epoch: 3\n}\n");
  Outcome outcome = octet("convert spec a.txt -o b.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "octet: a.txt:2:3: unknown field 'num_epoch' in 'training_config'; did you mean 'num_epochs'?\n");
  EXPECT_FALSE(exists("b.yaml"));
  write("c.yaml", "task: classification\n");
  outcome = octet("convert spec c.yaml -o c.txt");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_FALSE(exists("c.txt"));
}

TEST_F(ConvertSpec, OtherCommandsTakeTaosText) {
  write("a.txt", "training_config {\n  num_epochs: 30\n  visualizer { wandb_config { enabled: true } }\n}\n");
  Outcome outcome = octet("spec -e a.txt --set train.optimizer.lr=0.01");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("task: detectnet_v2\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  epochs: 30\n"));
  EXPECT_THAT(outcome.out, HasSubstr("    lr: 0.01\n"));
  EXPECT_THAT(outcome.err, HasSubstr("a.txt:3:16: 'training_config.visualizer.wandb_config' is not used: "));
  write("a.txt", "training_config {\n  num_epochs: 0\n}\n");
  outcome = octet("export -m m.onnx -o o.onnx -e a.txt");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("a.txt:2:15: 'training_config.num_epochs' must be 1 to 1e+05, found 0"));
}

TEST_F(ConvertSpec, KindsAreFoundByName) {
  Outcome outcome = octet("convert");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("usage: octet convert COMMAND"));
  outcome = octet("convert --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("\n  spec "));
  outcome = octet("convert spc a -o b");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "octet: unknown convert command 'spc'; did you mean 'spec'?\n");
  outcome = octet("help convert spec");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("octet convert spec "));
}

}  // namespace
