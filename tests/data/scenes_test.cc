#include "data/scenes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/memory_dataset.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::HasSubstr;

// Two classes of 8 x 8: a bright bar of 2 columns at columns 3 and 4, and a bright square over everything.
MemoryDataset pictures(bool labeled = true) {
  std::string bar(64, '\0'), square(64, '\xff');
  for (size_t i = 0; i < 64; ++i)
    if (i % 8 == 3 || i % 8 == 4) bar[i] = '\xff';
  MemoryDataset::Contents contents{.parts = {{.file = "made", .bytes = bar + square, .stride = 64, .count = 2}},
                                   .height = 8,
                                   .width = 8,
                                   .channels = 1};
  if (labeled) contents.labels = {0, 1}, contents.class_names = {"bar", "square"};
  return MemoryDataset(std::move(contents), 0);
}

TEST(Scenes, AreAFunctionOfSeedAndIndex) {
  const MemoryDataset data = pictures();
  const Scene a = make_scene(data, {.seed = 3}, 7), same = make_scene(data, {.seed = 3}, 7);
  EXPECT_EQ(a.image.pixels, same.image.pixels);
  EXPECT_NE(a.image.pixels, make_scene(data, {.seed = 3}, 8).image.pixels);
  EXPECT_NE(a.image.pixels, make_scene(data, {.seed = 4}, 7).image.pixels);
}

TEST(Scenes, BoxesLieTightAroundWhatIsSeen) {
  const MemoryDataset data = pictures();
  int bars = 0, squares = 0;
  for (int i = 0; i < 50; ++i) {
    const Scene scene = make_scene(data, {}, i);
    ASSERT_EQ(scene.image.height, 192);
    ASSERT_EQ(scene.image.width, 320);
    ASSERT_EQ(scene.objects.size(), scene.pictures.size());
    for (const vision::Object& object : scene.objects) {
      EXPECT_EQ(object.box, vision::clipped(object.box, 320, 192));
      const float shape = object.box.width() / object.box.height();
      if (object.label == 0) {
        // A quarter of the picture, and what resizing blurs beyond it.
        EXPECT_GT(shape, 0.24f);
        EXPECT_LT(shape, 0.5f);
        ++bars;
      } else {
        EXPECT_EQ(shape, 1);
        EXPECT_GE(object.box.width(), 28);
        EXPECT_LE(object.box.width(), 88);
        ++squares;
      }
    }
  }
  EXPECT_GT(bars, 20);
  EXPECT_GT(squares, 20);
}

TEST(Scenes, ObjectsKeepApart) {
  const MemoryDataset data = pictures();
  for (int i = 0; i < 30; ++i) {
    const Scene scene = make_scene(data, {.min_objects = 8, .max_objects = 8, .max_overlap = 0}, i);
    for (size_t a = 0; a < scene.objects.size(); ++a)
      for (size_t b = 0; b < a; ++b) EXPECT_EQ(vision::iou(scene.objects[a].box, scene.objects[b].box), 0);
  }
}

class SceneFolder : public DirectoryTest {};

TEST_F(SceneFolder, IsReadAgainAsItWasMade) {
  const MemoryDataset data = pictures();
  const SceneOptions options{.width = 96, .height = 64, .max_side = 40};
  write_scenes(data, options, {{"train", 5}, {"val", 3}}, directory_);
  const auto made = scene_dataset(data, options, 8);
  const auto val = open_dataset({.format = "voc", .path = directory_, .split = "val"});
  ASSERT_EQ(val->size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    const Sample read = val->get(i), expected = made->get(5 + i);
    EXPECT_EQ(read.image.pixels, expected.image.pixels);
    ASSERT_EQ(read.truth.objects.size(), expected.truth.objects.size());
    for (size_t k = 0; k < read.truth.objects.size(); ++k) {
      EXPECT_EQ(read.truth.objects[k].box, expected.truth.objects[k].box);
      EXPECT_EQ(val->class_names()[static_cast<size_t>(read.truth.objects[k].label)],
                data.class_names()[static_cast<size_t>(expected.truth.objects[k].label)]);
    }
  }
}

TEST(Scenes, RefuseWhatCannotBe) {
  const MemoryDataset data = pictures(), unlabeled = pictures(false);
  EXPECT_THAT(message_of([&] { make_scene(data, {.max_side = 300}, 0); }), HasSubstr("28 to 300 pixels"));
  EXPECT_THAT(message_of([&] { make_scene(data, {.min_objects = 5, .max_objects = 4}, 0); }),
              HasSubstr("5 to 4 objects"));
  EXPECT_THAT(message_of([&] { make_scene(unlabeled, {}, 0); }), HasSubstr("labels"));
}

}  // namespace
}  // namespace octet::data
