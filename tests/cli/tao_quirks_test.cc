// What NVIDIA TAO does without a word, or with a log line that nobody reads: here it is an error, or is said. The table
// in docs/tao_quirks.md names the tests of the others.
#include <gmock/gmock.h>

#include "cli/network_files.h"

namespace octet::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class TaoQuirks : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (!IsSkipped()) write_images();
  }
  // `arguments` of octet train for the folder r, which gets no model.
  void refused(int code, const std::string& arguments, const std::string& sentence) const {
    const Outcome outcome = octet("train -e spec.yaml -r r " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(sentence)) << arguments;
    EXPECT_FALSE(exists("r/model.onnx")) << arguments;
  }
  // A KITTI folder of four images with an object of this class each; `labels`: whether they have the object.
  void write_kitti(const std::string& name, const std::string& class_name, bool labels = true) const {
    for (const char* part : {"images", "labels"})
      std::filesystem::create_directories(folder_ + "/" + name + "/" + part);
    for (int i = 0; i < 4; ++i) {
      std::filesystem::copy_file(folder_ + "/data/a/" + std::to_string(i) + ".ppm",
                                 folder_ + "/" + name + "/images/" + std::to_string(i) + ".ppm");
      write(name + "/labels/" + std::to_string(i) + ".txt",
            labels ? class_name + " 0 0 0 1 1 7 7 0 0 0 0 0 0 0\n" : std::string());
    }
  }
  // Of a detector in TAO's text, which trains with `train`'s images and validates with `val`'s.
  void write_detector(const std::string& mapping, const std::string& val) const {
    write("spec.yaml",
          "task: detectnet_v2\nmodel: {arch: resnet10, input: [3, 32, 32], num_classes: 1}\ndata:\n"
          "  train: {format: kitti, path: train}\n  val: {format: kitti, path: " +
              val + "}\n  target_class_mapping: {" + mapping +
              "}\ntrain: {epochs: 1, batch_size_per_gpu: 2, precision: fp32, threads: 1}\n");
  }
};

// TAO skips QAT for some networks; a specification without enable_qat says false.
TEST_F(TaoQuirks, QatIsNotSkipped) {
  expect(0, "models resnet20 -o float.onnx --input 3,8,8 --num_classes 3");
  refused(2, "-m float.onnx --stage qat --set quant.enable_qat=false",
          "--stage qat: the experiment says quant.enable_qat: false");
  refused(2, "--set quant.enable_qat=true", "stage qat goes on from a model: name it with -m");
  const std::string once = " --set finetune.epochs=1";
  expect(0, "train -e spec.yaml -r r -m float.onnx --set quant.enable_qat=true" + once);
  expect(0, "export -m r/model.onnx -o q.onnx");
  EXPECT_THAT(read("q.onnx"), HasSubstr("QuantizeLinear"));
  // A model that has quantizers does not lose them to a training in float.
  EXPECT_EQ(octet("train -e spec.yaml -r f -m r/model.onnx --stage control" + once).code, 2);
  EXPECT_FALSE(exists("f/model.onnx"));
}

// UNet of TAO takes --use_amp and trains in FP32.
TEST_F(TaoQuirks, MixedPrecisionIsUsedOrNamed) {
  const Outcome outcome = octet("train -e spec.yaml -r r --use_amp --set train.epochs=1 --set train.schedule.warmup=0");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto used_or_named = AnyOf(HasSubstr("bf16 on cpu"),
                                   HasSubstr("--use_amp: trains in fp32 all the same, because this CPU has no BF16"));
  EXPECT_THAT(outcome.err, used_or_named);
  // The float control, too: it differs from QAT by the quantizers alone.
  EXPECT_THAT(octet("train -e spec.yaml -r c --use_amp --stage control --set finetune.epochs=1 -m r/model.onnx").err,
              used_or_named);
}

TEST_F(TaoQuirks, MoreGpusThanThereAreAreRefused) {
  refused(2, "--gpus 1000", "--gpus 1000: ");  // none, or not so many
}

TEST_F(TaoQuirks, TheCaseOfClassNamesIsPointedOut) {
  write_kitti("train", "Car");
  write_detector("car: car", "train");
  refused(2, "", "'car' differs only in case");
}

TEST_F(TaoQuirks, AnEmptyValidationSetIsRefused) {
  write_kitti("train", "car");
  write_kitti("val", "car", /*labels=*/false);
  write_detector("car: car", "val");
  refused(1, "", "val: has no object in any of its 4 annotations");
  std::filesystem::remove_all(folder_ + "/val");
  write_kitti("val", "tram");
  refused(2, "", "leave nothing of it; the class 'tram' (4 objects)");
  expect(2, "evaluate -e spec.yaml -m missing.onnx");
}

TEST_F(TaoQuirks, WithoutValidationImagesItIsSaid) {
  write("spec.yaml", read("spec.yaml") + "evaluate: {batch_size: 6}\n");
  const std::string train = "train -e spec.yaml -r r --set train.epochs=1 --set 'data.val=[]'";
  const Outcome outcome = octet(train);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no images validate (data.val)"));
}

// TAO writes over nothing, too; a model is not replaced unasked by any command.
TEST_F(TaoQuirks, AnOutputThatExistsIsRefused) {
  write("out.onnx", "precious");
  expect(0, "models resnet20 -o float.onnx --input 3,8,8 --num_classes 3");
  for (const std::string command :
       {"models resnet20 -o out.onnx", "export -m float.onnx --data_type fp32 -o out.onnx",
        "prune -m float.onnx -o out.onnx", "quantize -m float.onnx --images data -o out.onnx",
        "calibrate -e spec.yaml -m float.onnx -o out.onnx"}) {
    const Outcome outcome = octet(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("out.onnx"), HasSubstr("--force"))) << command;
    EXPECT_EQ(read("out.onnx"), "precious") << command;
  }
}

}  // namespace
}  // namespace octet::test
