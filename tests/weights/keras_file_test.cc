#include "weights/keras_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "weights/keras_writer.h"

namespace octet::weights {
namespace {

using testing::counting;
using ::testing::HasSubstr;
using testing::KerasFormat;
using testing::KerasWriter;
using ::testing::ThrowsMessage;

std::vector<testing::KerasLayer> layers() {
  return {{"input_1", {}},
          {"conv1", {counting("conv1/kernel:0", {3, 5, 2, 4}), counting("conv1/bias:0", {4})}},
          {"bn_conv1",
           {counting("bn_conv1/gamma:0", {4}, 2), counting("bn_conv1/beta:0", {4}, 3),
            counting("bn_conv1/moving_mean:0", {4}, 4), counting("bn_conv1/moving_variance:0", {4}, 5)}},
          {"conv_dw_1", {counting("conv_dw_1/depthwise_kernel:0", {3, 3, 4, 2})}},
          {"predictions", {counting("predictions/kernel:0", {6, 3}), counting("predictions/bias:0", {3})}}};
}

float at(const ir::Tensor& tensor, const std::vector<int64_t>& index) {
  size_t place = 0;
  for (size_t i = 0; i < index.size(); ++i)
    place = place * static_cast<size_t>(tensor.shape()[i]) + static_cast<size_t>(index[i]);
  return tensor.values<float>()[place];
}

void expect_layers(const checkpoint::NamedTensors& read) {
  EXPECT_EQ(read.size(), 9u);
  const ir::Tensor& conv = read.at("conv1.weight");
  ASSERT_EQ(conv.shape(), (ir::Shape{4, 2, 3, 5}));
  for (int64_t o = 0; o < 4; ++o)
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t y = 0; y < 3; ++y)
        for (int64_t x = 0; x < 5; ++x)
          EXPECT_EQ(at(conv, {o, i, y, x}), static_cast<float>(((y * 5 + x) * 2 + i) * 4 + o));
  EXPECT_EQ(read.at("conv1.bias").to_floats(), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(read.at("bn_conv1.weight").to_floats(), (std::vector<float>{0, 2, 4, 6}));
  EXPECT_EQ(read.at("bn_conv1.bias").to_floats(), (std::vector<float>{0, 3, 6, 9}));
  EXPECT_EQ(read.at("bn_conv1.running_mean").to_floats(), (std::vector<float>{0, 4, 8, 12}));
  EXPECT_EQ(read.at("bn_conv1.running_var").to_floats(), (std::vector<float>{0, 5, 10, 15}));
  const ir::Tensor& depthwise = read.at("conv_dw_1.weight");
  ASSERT_EQ(depthwise.shape(), (ir::Shape{8, 1, 3, 3}));
  for (int64_t c = 0; c < 8; ++c)  // channel c / 2, its multiplier c % 2
    for (int64_t y = 0; y < 3; ++y)
      for (int64_t x = 0; x < 3; ++x)
        EXPECT_EQ(at(depthwise, {c, 0, y, x}), static_cast<float>(((y * 3 + x) * 4 + c / 2) * 2 + c % 2));
  const ir::Tensor& dense = read.at("predictions.weight");
  ASSERT_EQ(dense.shape(), (ir::Shape{3, 6}));
  for (int64_t o = 0; o < 3; ++o)
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(at(dense, {o, i}), static_cast<float>(i * 3 + o));
}

TEST(KerasFileTest, ReadsTheFormsInWhichFilesAreWritten) {
  for (const KerasFormat& format :
       {KerasFormat{}, KerasFormat{.whole_model = false}, KerasFormat{.variable_texts = true},
        KerasFormat{.newest_format = true}, KerasFormat{.variable_texts = true, .newest_format = true},
        KerasFormat{.doubles = true}, KerasFormat{.deflated = true}, KerasFormat{.names_a_piece = 2}})
    expect_layers(read_keras_weights(KerasWriter::bytes(layers(), format), "m.hdf5"));
}

TEST(KerasFileTest, ScopesThatASessionNumberedBelongToTheirLayer) {
  const auto read = read_keras_weights(
      KerasWriter::bytes({{"conv1", {counting("conv1_1/kernel:0", {1, 1, 2, 3}), counting("conv1_1/bias:0", {3})}}}),
      "m.hdf5");
  EXPECT_TRUE(read.contains("conv1.weight"));
  EXPECT_TRUE(read.contains("conv1.bias"));
}

TEST(KerasFileTest, LayersOfNestedModelsKeepTheirNames) {
  const auto read = read_keras_weights(
      KerasWriter::bytes({{"resnet18", {counting("conv1/kernel:0", {1, 1, 2, 3}), counting("bn_conv1/gamma:0", {3})}}}),
      "m.hdf5");
  EXPECT_TRUE(read.contains("conv1.weight"));
  EXPECT_TRUE(read.contains("bn_conv1.weight"));
}

TEST(KerasFileTest, SaysWhatIsNoModel) {
  const std::string keras3 = KerasWriter::bytes({{"layers", {}}}, {.whole_model = false});
  EXPECT_THAT([] { read_keras_weights("\x89HDF\r\n\x1a\n and then nothing", "m.hdf5"); },
              ThrowsMessage<UserError>(HasSubstr("m.hdf5: it is damaged or truncated")));
  const std::string whole = KerasWriter::bytes(layers());
  EXPECT_THAT([&] { read_keras_weights(whole.substr(0, whole.size() / 2), "m.hdf5"); },
              ThrowsMessage<UserError>(HasSubstr("m.hdf5: ")));
}

// libhdf5 may crash on damaged files, and does; the reader does not.
TEST(KerasFileTest, SurvivesDamagedFiles) {
  std::mt19937 random(7);
  int refused = 0;
  constexpr int kFiles = 300;
  for (int i = 0; i < kFiles; ++i) {
    std::string bytes = KerasWriter::bytes(
        layers(), {.variable_texts = i % 2 == 1, .newest_format = i % 3 == 1, .deflated = i % 5 == 1});
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int change = 0; change < changes; ++change)
      bytes[8 + random() % (bytes.size() - 8)] = static_cast<char>(random());
    if (i % 7 == 0) bytes.resize(random() % bytes.size());
    try {
      for (const auto& [name, tensor] : read_keras_weights(bytes, "m.hdf5"))
        EXPECT_EQ(tensor.bytes().size(), static_cast<size_t>(tensor.size()) * sizeof(float));
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), ::testing::StartsWith("m.hdf5: "));
      ++refused;
    }
  }
  EXPECT_GT(refused, kFiles / 10);
}

}  // namespace
}  // namespace octet::weights
