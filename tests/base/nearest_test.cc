#include "base/nearest.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(Nearest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("tarin", "train"), 1);  // neighbors swapped
  EXPECT_EQ(edit_distance("epoch", "epochs"), 1);
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"epochs", "precision", "optimizer", "batch_size_per_gpu", "lr"};
  EXPECT_EQ(nearest_name("epoch", names), "epochs");
  EXPECT_EQ(nearest_name("Epochs", names), "epochs");
  EXPECT_EQ(nearest_name("optimzer", names), "optimizer");
  EXPECT_EQ(nearest_name("batch_size", names), "batch_size_per_gpu");
  EXPECT_EQ(nearest_name("rl", names), "lr");
  EXPECT_EQ(did_you_mean("presicion", names), "; did you mean 'precision'?");
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string> names = {"epochs", "lr"};
  EXPECT_EQ(nearest_name("zzzzzz", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'e'), names), "");
  EXPECT_EQ(did_you_mean("epochs", {}), "");
}

}  // namespace
}  // namespace octet
