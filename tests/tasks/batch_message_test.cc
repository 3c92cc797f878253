#include "tasks/batch_message.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "vision/mask.h"

namespace octet::tasks {
namespace {

TEST(BatchMessage, BringsAllButThePixels) {
  const std::vector<float> scores = {1, 2, 3, 4, 5, 6}, boxes = {0.5f, -1};
  const Outputs outputs = {{"scores", {2, 3}, scores, metrics::ScoreKind::kLogits}, {"boxes", {2, 1}, boxes}};
  data::Batch batch;
  batch.size = 2;
  batch.channels = 3;
  batch.height = 5;
  batch.width = 7;
  batch.indices = {11, 4};
  const std::vector<uint32_t> counts = {2, 3, 1};
  batch.truth.resize(2);
  batch.truth[0] = {.label = 3, .objects = {}, .weight = 0.25f};
  batch.truth[1].objects = {{.box = {1, 2, 3, 4}, .label = 2, .score = 0.5f, .difficult = true},
                            {.box = {0, 0, 2, 3}, .crowd = true, .mask = std::make_shared<vision::Mask>(2, 3, counts)}};
  batch.geometry = {data::Geometry::whole(5, 7), data::Geometry::whole(10, 14)};
  batch.geometry[1].warp = data::Affine::scaling(2, 3);
  const std::string message = batch_message(outputs, batch);
  const ReceivedBatch received(message);
  ASSERT_EQ(received.outputs().size(), 2u);
  EXPECT_EQ(received.outputs()[0].name, "scores");
  EXPECT_EQ(received.outputs()[0].shape, outputs[0].shape);
  EXPECT_EQ(std::vector<float>(received.outputs()[0].values.begin(), received.outputs()[0].values.end()), scores);
  EXPECT_EQ(received.outputs()[1].values[1], -1);
  const data::Batch& b = received.batch();
  EXPECT_EQ(b.size, 2);
  EXPECT_EQ(b.height, 5);
  EXPECT_EQ(b.indices, batch.indices);
  EXPECT_EQ(b.truth[0].label, 3);
  EXPECT_EQ(b.truth[0].weight, 0.25f);
  ASSERT_EQ(b.truth[1].objects.size(), 2u);
  EXPECT_EQ(b.truth[1].objects[0].box, (vision::Box{1, 2, 3, 4}));
  EXPECT_TRUE(b.truth[1].objects[0].difficult && b.truth[1].objects[1].crowd);
  ASSERT_TRUE(b.truth[1].objects[1].mask);
  EXPECT_EQ(*b.truth[1].objects[1].mask, *batch.truth[1].objects[1].mask);
  EXPECT_EQ(b.geometry[0].width, 7);
  ASSERT_TRUE(b.geometry[1].warp);
  EXPECT_EQ(*b.geometry[1].warp, data::Affine::scaling(2, 3));
  for (const size_t length : {size_t{0}, size_t{5}, message.size() / 2, message.size() - 1})
    EXPECT_THROW(ReceivedBatch(message.substr(0, length)), UserError) << length;
}

}  // namespace
}  // namespace octet::tasks
