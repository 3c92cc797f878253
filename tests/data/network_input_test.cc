#include "data/network_input.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace octet::data {
namespace {

using Shape = std::vector<int64_t>;

TEST(NetworkInput, OfBatches) {
  const NetworkInput rows = read_network_input("x", {-1, 3, 8, 6});
  EXPECT_EQ(rows.batch, 0);
  EXPECT_EQ(rows.shape(2, 3, 8, 6), (Shape{2, 3, 8, 6}));
  const NetworkInput last = read_network_input("x", {4, 8, 6, 3});
  EXPECT_TRUE(last.nhwc);
  EXPECT_EQ(last.batch, 4);
  EXPECT_EQ(last.shape(4, 3, 8, 6), (Shape{4, 8, 6, 3}));
}

// torchvision's detectors take a list of images, each of which is an input.
TEST(NetworkInput, OfOneImage) {
  const NetworkInput image = read_network_input("x", {3, 8, 6});
  EXPECT_TRUE(image.single);
  EXPECT_EQ(image.batch, 1);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.height, 8);
  EXPECT_EQ(image.width, 6);
  EXPECT_EQ(image.shape(1, 3, 8, 6), (Shape{3, 8, 6}));
  const NetworkInput last = read_network_input("x", {8, 6, 1});
  EXPECT_TRUE(last.nhwc);
  EXPECT_EQ(last.shape(1, 1, 8, 6), (Shape{8, 6, 1}));
}

TEST(NetworkInput, OfNoImageIsRefused) {
  EXPECT_THROW(read_network_input("x", {1, 10}), UserError);
  EXPECT_THROW(read_network_input("x", {1, 1, 3, 8, 8}), UserError);
  EXPECT_THROW(read_network_input("x", {5, 8, 6}), UserError);
}

}  // namespace
}  // namespace octet::data
