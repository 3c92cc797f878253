// --dump-passes: the graph after each pass of a stage, numbered through.
#include <gmock/gmock.h>

#include <algorithm>

#include "cli/network_files.h"

namespace octet::test {
namespace {

using ir::OpKind;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DumpPasses : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (IsSkipped()) return;
    write_images();
    ir::Graph g;
    ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, 8, 8}});
    ir::Value* y = g.add(OpKind::kConv, "conv", {x, g.add_constant("w", noise({4, 3, 3, 3}, 1))});
    y = g.add(OpKind::kGlobalAveragePool, "pool", {g.add(OpKind::kRelu, "relu", {y})});
    y = g.add(OpKind::kFlatten, "flatten", {y});
    g.add_output(g.add(OpKind::kGemm, "fc", {y, g.add_constant("v", noise({4, 3}, 2))}));
    save(std::move(g), "float.onnx");
  }

  std::vector<std::string> files(const std::string& folder) const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/" + folder))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
};

TEST_F(DumpPasses, OfACalibrationAndAnExport) {
  expect(0, "calibrate -e spec.yaml -m float.onnx -o calibrated.onnx --dump-passes c");
  const std::vector<std::string> calibration = files("c");
  ASSERT_EQ(calibration.size(), 13u);
  EXPECT_EQ(calibration.front(), "00_input.txt");
  EXPECT_THAT(calibration, Contains("10_place_fake_quant.txt"));
  EXPECT_EQ(calibration[11], "11_set_scales.txt");
  EXPECT_EQ(calibration[12], "12_snap_biases.txt");
  EXPECT_THAT(read("c/00_input.txt"), Not(HasSubstr("FakeQuantize")));
  EXPECT_THAT(read("c/10_place_fake_quant.txt"), HasSubstr("FakeQuantize"));
  EXPECT_NE(read("c/10_place_fake_quant.txt"), read("c/11_set_scales.txt"));

  expect(0, "export -m calibrated.onnx -o t.onnx --target tensorrt --dump-passes t");
  EXPECT_THAT(files("t"),
              ElementsAre("00_input.txt", "01_fold_batch_norm.txt", "02_make_signed.txt", "03_fit_conv_transpose.txt"));
  expect(0, "export -m calibrated.onnx -o f.onnx --data_type fp32 --dump-passes f");
  EXPECT_THAT(files("f"), ElementsAre("00_input.txt", "01_fold_batch_norm.txt", "02_remove_fake_quant.txt"));
  EXPECT_THAT(read("f/02_remove_fake_quant.txt"), Not(HasSubstr("FakeQuantize")));
  expect(0, "quantize -m float.onnx --images data -o q.onnx --dump-passes q");
  EXPECT_EQ(files("q"), calibration);
}

}  // namespace
}  // namespace octet::test
