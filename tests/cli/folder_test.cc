// octet train --data FOLDER, and the experiments that octet spec prints.
#include <gmock/gmock.h>

#include "cli/network_files.h"

namespace {

namespace fs = std::filesystem;
using octet::test::NetworkFiles;
using octet::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TrainFolder : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (!IsSkipped()) write_images();
  }
};

TEST_F(TrainFolder, OneCommandTrainsAndLeavesTheExperiment) {
  const std::string command = "train --data data --arch resnet20 --epochs 1 -r out";
  const Outcome trained = octet(command);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, AllOf(HasSubstr("3 class folders"), HasSubstr("4 of the 18 training images"),
                                 HasSubstr("out/spec.yaml")));
  EXPECT_THAT(read("out/spec.yaml"), AllOf(HasSubstr("arch: resnet20\n"), HasSubstr("num_classes: 3\n"),
                                           HasSubstr("input: [3, 32, 32]\n"), HasSubstr("epochs: 1\n")));
  // The same again has nothing to do, and the experiment says the same.
  EXPECT_THAT(octet(command).err, HasSubstr("nothing to do"));
  EXPECT_THAT(octet("train -e out/spec.yaml -r out").err, HasSubstr("nothing to do"));
  EXPECT_EQ(octet("evaluate -e out/spec.yaml -m out/model.onnx").code, 0);
}

// No network of the zoo, and no key to know: graph and size of images are those of the file.
TEST_F(TrainFolder, ANetworkOfOnesOwnIsTrainedAsItIs) {
  ASSERT_EQ(octet("models squeezenet -o mine.onnx --input 3,40,36 --num_classes 3").code, 0);
  const Outcome trained = octet("train --data data -m mine.onnx --stage qat -r out --set finetune.epochs=1");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("octet compile out/model.onnx -o out/model.octet"));
  EXPECT_THAT(read("out/spec.yaml"), AllOf(HasSubstr("load_graph: true"), HasSubstr("input: [3, 40, 36]")));
  EXPECT_EQ(octet("compile out/model.onnx -o out/model.octet").code, 0);
  EXPECT_THAT(octet("infer -m out/model.octet data/c/0.ppm").out, HasSubstr("0.ppm"));
  ASSERT_EQ(octet("models squeezenet -o ten.onnx --input 3,40,36 --num_classes 10").code, 0);
  EXPECT_THAT(octet("train --data data -m ten.onnx -r other").err, AllOf(HasSubstr("10"), HasSubstr("3")));
}

TEST_F(TrainFolder, SpecPrintsTheExperimentOfAFolder) {
  const Outcome printed = octet("spec --data data --arch resnet20 >short.yaml");
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(read("short.yaml"), HasSubstr("model: {arch: resnet20, num_classes: auto, input: auto}"));
  EXPECT_THAT(octet("spec -e short.yaml").out, HasSubstr("num_classes: 3\n"));
  EXPECT_EQ(octet("spec --data data --arch resnet21").code, 2);
}

TEST_F(TrainFolder, TheDefaultsRun) {
  fs::create_directories(folder_ + "/images");
  ASSERT_EQ(octet("spec --defaults >all.yaml").code, 0);
  EXPECT_THAT(octet("train -e all.yaml -r out").err, HasSubstr("data/train, which does not exist"));
  fs::rename(folder_ + "/data", folder_ + "/images/train");
  fs::rename(folder_ + "/images", folder_ + "/data");
  fs::copy(folder_ + "/data/train", folder_ + "/data/val", fs::copy_options::recursive);
  const Outcome trained =
      octet("train -e all.yaml -r out --set model.arch=resnet20 --set train.epochs=1 --set train.batch_size_per_gpu=6");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(read("out/spec.yaml"), HasSubstr("mean: [0.4914, 0.4822, 0.4465]\n"));
}

TEST_F(TrainFolder, SaysWhatIsWrong) {
  EXPECT_THAT(octet("train -r out").err, HasSubstr("give an experiment (-e SPEC), or a folder"));
  EXPECT_THAT(octet("train -e spec.yaml --data data -r out").err, HasSubstr("two experiments"));
  EXPECT_THAT(octet("train --data nowhere -r out").err, HasSubstr("--data nowhere: is not there"));
  EXPECT_FALSE(exists("out"));
  // Means of bytes.
  const Outcome mean = octet("train -e spec.yaml -r out --set data.mean=[123.675,116.28,103.53]");
  EXPECT_EQ(mean.code, 2);
  EXPECT_THAT(mean.err, AllOf(HasSubstr("'data.mean' is 123.7,116.3,103.5, of pixels of 0 .. 255"),
                              HasSubstr("divide mean and std by 255 (0.485,0.456,0.406)")));
  EXPECT_EQ(octet("models resnet20 -o m.onnx").code, 0);
  const Outcome quantize = octet("quantize -m m.onnx --images data --mean 123.675 -o q.onnx");
  EXPECT_EQ(quantize.code, 2);
  EXPECT_THAT(quantize.err, HasSubstr("--mean is 123.7, of pixels of 0 .. 255"));
}

}  // namespace
