#include "weights/weight_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "base/error.h"
#include "base/files.h"
#include "models/zoo.h"
#include "onnx/export.h"
#include "weights/keras_writer.h"

namespace octet::weights {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WeightFileTest : public ::testing::Test {
 protected:
  WeightFileTest() : folder_(std::filesystem::temp_directory_path() / str("octet_weights_", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~WeightFileTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& bytes) {
    write_file_atomically(folder_ / name, bytes);
    return folder_ / name;
  }
  std::string complaint(const std::string& name, const std::string& bytes) {
    try {
      read_weights(write(name, bytes));
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), ::testing::StartsWith((folder_ / name).string()));
      return e.what();
    }
    return "";
  }

  std::filesystem::path folder_;
};

std::string noise(size_t size) {
  std::mt19937 random(3);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

TEST_F(WeightFileTest, FormatsAreToldByTheirContent) {
  const ir::Tensor half(ir::DataType::kBFloat16, {2},
                        {std::byte{0x80}, std::byte{0x3f}, std::byte{0}, std::byte{0x40}});
  const auto safetensors =
      write("weights.bin", checkpoint::safetensors_bytes({{"a", half}, {"n", ir::Tensor::scalar<int64_t>(3)}}));
  EXPECT_EQ(weight_format(safetensors), WeightFormat::kSafetensors);
  const auto tensors = read_weights(safetensors);
  EXPECT_EQ(tensors.size(), 1u);  // num_batches_tracked and its like are no weights
  EXPECT_EQ(tensors.at("a").to_floats(), (std::vector<float>{1, 2}));

  const auto keras =
      write("model.tlt", testing::KerasWriter::bytes({{"conv1", {testing::counting("conv1/kernel:0", {1, 1, 2, 3})}}}));
  EXPECT_EQ(weight_format(keras), WeightFormat::kKeras);
  EXPECT_EQ(read_weights(keras).at("conv1.weight").shape(), (ir::Shape{3, 2, 1, 1}));

  const ir::Graph graph = models::build_model({.arch = "resnet20", .num_classes = 2, .input = {3, 8, 8}});
  const auto onnx = write("model", onnx::export_bytes(graph, {}));
  EXPECT_EQ(weight_format(onnx), WeightFormat::kOnnx);
  EXPECT_EQ(read_weights(onnx).at("conv1.weight").shape(), (ir::Shape{16, 3, 3, 3}));
}

TEST_F(WeightFileTest, EncryptedModelsOfTaoAreNamedAsSuch) {
  const std::string what = "is an encrypted model of NVIDIA TAO";
  EXPECT_THAT(complaint("resnet18.tlt", noise(5000)), AllOf(HasSubstr(what), HasSubstr("tao model NETWORK export")));
  const std::string onnx_inside = std::string(4, '\0') + noise(5000);
  EXPECT_THAT(complaint("resnet18.etlt", onnx_inside), HasSubstr(what));
  // By content alone.
  EXPECT_THAT(complaint("model", onnx_inside), HasSubstr(what));
  EXPECT_THAT(complaint("model", std::string("\x07\0\0\0input_1", 11) + noise(5000)), HasSubstr(what));
}

TEST_F(WeightFileTest, OtherFilesAreRefused) {
  EXPECT_THAT(complaint("model.keras", "PK\x03\x04 archive"), HasSubstr("it has no directory"));
  EXPECT_NE(complaint("notes.txt", "no weights at all"), "");
  EXPECT_NE(complaint("model.onnx", noise(5000)), "");
}

}  // namespace
}  // namespace octet::weights
