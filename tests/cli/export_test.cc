// octet export: calibration cache, engine, DeepStream's files; and the cache's way back by octet quantize.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/network_files.h"

namespace octet::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ExportCommand : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (IsSkipped()) return;
    write_images();
    expect(0, "models resnet20 -o float.onnx --input 3,8,8 --num_classes 3");
    expect(0, "quantize -e spec.yaml -m float.onnx --images data -o q.onnx");
  }
  // `arguments` fail with this code and sentence, and leave nothing behind.
  void refused(int code, const std::string& arguments, const std::string& sentence) const {
    const Outcome outcome = octet(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(sentence)) << arguments;
    for (const char* output : {"out.onnx", "out.clean.onnx", "cal.bin", "out.octet", "nvinfer_config.txt"})
      EXPECT_FALSE(exists(output)) << arguments << " left " << output;
  }
  std::map<std::string, std::string> cache_lines(const std::string& name) const {
    std::map<std::string, std::string> out;
    std::istringstream lines(read(name));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) out[line.substr(0, line.rfind(": "))] = line.substr(line.rfind(": ") + 2);
    return out;
  }
};

TEST_F(ExportCommand, ACacheAndItsWayBack) {
  const Outcome done = octet("export -m q.onnx -o out.onnx --cal_cache_file cal.bin --trt-version 8.5.1");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("calibration cache for TensorRT 8.5.1"));
  const std::string cache = read("cal.bin");
  EXPECT_THAT(cache, StartsWith("TRT-8501-EntropyCalibration2\n"));
  ASSERT_TRUE(exists("out.clean.onnx"));
  EXPECT_THAT(read("out.onnx"), HasSubstr("QuantizeLinear"));
  EXPECT_THAT(read("out.clean.onnx"), Not(HasSubstr("QuantizeLinear")));
  // Back to QDQ, and from that the same cache once more.
  const Outcome applied = octet("quantize -m out.clean.onnx --cal_cache_file cal.bin -o again.onnx");
  ASSERT_EQ(applied.code, 0) << applied.err;
  EXPECT_THAT(applied.err, HasSubstr("ranges are of tensors of the network"));
  expect(0, "export -m again.onnx -o out2.onnx --cal_cache_file cal2.bin --trt-version 8.5.1");
  EXPECT_EQ(read("cal2.bin"), cache);
  // Weights by max|w| in both: the very same network.
  expect(0, "infer -e spec.yaml -m out.onnx --json a.json data");
  expect(0, "infer -e spec.yaml -m out2.onnx --json b.json data");
  const auto a = nlohmann::json::parse(read("a.json")), b = nlohmann::json::parse(read("b.json"));
  EXPECT_EQ(a["predictions"], b["predictions"]);
  // Calibrate takes it, too, as the start of a quantization-aware training.
  expect(0, "calibrate -e spec.yaml -m out.clean.onnx --cal_cache_file cal.bin -o calibrated.onnx");
}

// TAO and TensorRT reuse a cache that is there with no more than a warning.
TEST_F(ExportCommand, AnExistingCacheIsNeitherUsedNorReplaced) {
  write("cal.bin", "TRT-8501-EntropyCalibration2\nx: 3d418306\n");
  const Outcome outcome = octet("export -m q.onnx -o out.onnx --cal_cache_file cal.bin --trt-version 8.5.1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("cal.bin"));
  EXPECT_EQ(read("cal.bin"), "TRT-8501-EntropyCalibration2\nx: 3d418306\n");
  EXPECT_FALSE(exists("out.onnx"));
  expect(0, "export -m q.onnx -o out.onnx --cal_cache_file cal.bin --trt-version 8.5.1 --force");
  EXPECT_GT(cache_lines("cal.bin").size(), 10u);
}

TEST_F(ExportCommand, ACacheOfAnotherNetworkIsRefused) {
  write("foreign.bin", "TRT-8501-EntropyCalibration2\ninput_1: 3d418306\nconv1/Relu: 3d418306\n");
  refused(1, "quantize -m float.onnx --cal_cache_file foreign.bin -o out.onnx",
          "foreign.bin: none of its names is a tensor of the network");
  write("damaged.bin", "TRT-8501-EntropyCalibration2\ninput_1: 3d41830x\n");
  refused(1, "quantize -m float.onnx --cal_cache_file damaged.bin -o out.onnx",
          "damaged.bin:2: '3d41830x' is no scale");
  refused(2, "quantize -m float.onnx --cal_cache_file missing.bin -o out.onnx", "missing.bin");
  refused(2, "quantize -m float.onnx -o out.onnx", "give either typical images");
}

// TAO calibrates with random tensors then.
TEST_F(ExportCommand, NoImagesNoCalibration) {
  refused(2, "quantize -m float.onnx --images nowhere -o out.onnx", "nowhere: there is no such file or folder");
  refused(2, "export -e spec.yaml -m q.onnx -o out.onnx --force_ptq --cal_image_dir nowhere",
          "nowhere: there is no such");
  std::filesystem::create_directory(folder_ + "/empty");
  refused(1, "export -e spec.yaml -m q.onnx -o out.onnx --force_ptq --cal_image_dir empty",
          "there is no image in empty");
  refused(2, "export -m q.onnx -o out.onnx --force_ptq", "name the experiment that has them (-e SPEC)");
  refused(2, "export -m q.onnx -o out.onnx --cal_cache_file cal.bin --cache-scope all",
          "images have to say the range of");
}

TEST_F(ExportCommand, ForcePtqForgetsTheRangesOfTheModel) {
  expect(0, "export -m q.onnx -o before.onnx --cal_cache_file before.bin --trt-version 8.6.1");
  expect(0,
         "export -e spec.yaml -m q.onnx -o after.onnx --cal_cache_file after.bin --trt-version 8.6.1 --force_ptq "
         "--set quant.calibration.method=max --batches 1 --batch_size 2 --cal_image_dir data/a");
  const auto before = cache_lines("before.bin"), after = cache_lines("after.bin");
  ASSERT_EQ(before.size(), after.size());
  int other = 0;
  for (const auto& [name, digits] : before) other += after.at(name) != digits;
  EXPECT_GT(other, static_cast<int>(before.size()) / 2);
  // A float model, too.
  expect(0, "export -e spec.yaml -m float.onnx -o direct.onnx --force_ptq");
}

TEST_F(ExportCommand, ARangeForEveryTensor) {
  expect(0, "export -m q.onnx -o few.onnx --cal_cache_file few.bin --trt-version 8.6.1");
  const Outcome done = octet(
      "export -e spec.yaml -m q.onnx -o all.onnx --cal_cache_file all.bin --trt-version 8.6.1 --cache-scope all "
      "--cal_json_file all.json");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr(" of quantizers, "));
  const auto few = cache_lines("few.bin"), all = cache_lines("all.bin");
  for (const auto& [name, digits] : few) EXPECT_EQ(all.at(name), digits) << name;
  const auto json = nlohmann::json::parse(read("all.json"));
  EXPECT_EQ(json["tensor_scales"].size(), all.size());
  std::map<std::string, int> origins;
  for (const auto& [name, origin] : json["origins"].items()) ++origins[origin.get<std::string>().substr(0, 7)];
  EXPECT_EQ(origins["quantiz"], static_cast<int>(few.size()));
  EXPECT_GT(origins["derived"], 0);
  EXPECT_GT(origins["measure"], 0);
}

TEST_F(ExportCommand, EngineAndDeepStreamBesideIt) {
  const Outcome done = octet(
      "export -e spec.yaml -m q.onnx -o out.onnx --cal_cache_file cal.bin --trt-version 8.6.1 --engine_file out.octet "
      "--batch_size 4 --gen_ds_config");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(read("nvinfer_config.txt"), HasSubstr("int8-calib-file=cal.bin\n"));
  EXPECT_THAT(read("nvinfer_config.txt"), HasSubstr("onnx-file=out.clean.onnx\n"));
  EXPECT_THAT(read("nvinfer_config.txt"), HasSubstr("batch-size=4\n"));
  EXPECT_EQ(read("labels.txt"), "a;b;c\n");
  expect(0, "evaluate -e spec.yaml -m out.octet");
  expect(2, "export -e spec.yaml -m q.onnx -o other.onnx --data_type fp32 --gen_ds_config");  // both are there
}

TEST_F(ExportCommand, FlagsThatDoNotGoTogether) {
  refused(2, "export -m q.onnx -o out.onnx --cal_cache_file cal.bin --trt-version 11.0.0",
          "takes no calibration caches");
  refused(2, "export -m q.onnx -o out.onnx --cal_cache_file cal.bin --trt-version 8", "--trt-version 8: expected");
  refused(2, "export -m q.onnx -o out.onnx --cal_cache_file cal.bin --data_type fp32", "is of --data_type int8");
  refused(2, "export -m q.onnx -o out.onnx --engine_file out.octet --data_type fp16", "INT8 and FP32");
  refused(2, "export -e spec.yaml -m q.onnx -o out.onnx --gen_ds_config", "with a calibration cache only");
  refused(2, "export -m q.onnx -o out.onnx --cal_cache_file cal.bin --gen_ds_config", "name the experiment");
  refused(2, "export -m q.onnx -o out.onnx --cache-scope all", "of which cache?");
  refused(2, "export -e spec.yaml -m q.onnx -o out.onnx --batches 3", "--batches: images are run with --force_ptq");
  refused(2, "export -m float.onnx -o out.onnx", "has no quantizers");
}

TEST_F(ExportCommand, HalfPrecision) {
  expect(0, "export -m q.onnx -o half.onnx --data_type fp16");
  expect(0, "export -m q.onnx -o single.onnx --data_type fp32");
  EXPECT_LT(read("half.onnx").size(), read("single.onnx").size() * 0.6);
  expect(0, "evaluate -e spec.yaml -m half.onnx");
}

TEST_F(ExportCommand, ObjectsOfAClassifier) {
  const Outcome outcome = octet("infer -e spec.yaml -m q.onnx data --kitti labels");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--kitti and --coco are of detectors"));
}

}  // namespace
}  // namespace octet::test
