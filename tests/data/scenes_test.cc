#include "data/scenes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/files.h"
#include "data/memory_dataset.h"
#include "data/scene_files.h"
#include "image_files.h"
#include "vision/mask.h"
#include "vision/polygon.h"
#include "vision/rle_text.h"

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
  const auto made = scene_dataset(data, options, 8);
  for (const auto& [name, format] : {std::pair("voc", SceneFormat::kVoc), std::pair("kitti", SceneFormat::kKitti)}) {
    const auto folder = directory_ / name;
    write_scenes(data, options, format, {{"train", 5}, {"val", 3}}, folder);
    EXPECT_EQ(open_dataset({.format = name, .path = folder, .split = "train"})->size(), 5);
    const auto val = open_dataset({.format = name, .path = folder, .split = "val"});
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
}

// Masks against what an independent look at the pictures says: a bright square hides all that is below it.
TEST(Scenes, MasksAreWhatIsSeen) {
  const MemoryDataset data = pictures();
  const SceneOptions options{
      .width = 120, .height = 90, .min_objects = 6, .max_objects = 6, .max_overlap = 0.4f, .masks = true};
  int hidden = 0;
  for (int i = 0; i < 20; ++i) {
    const Scene scene = make_scene(data, options, i);
    ASSERT_EQ(scene.seen.size(), scene.objects.size());
    for (size_t a = 0; a < scene.objects.size(); ++a) {
      const vision::Mask& mask = *scene.objects[a].mask;
      const vision::Box b = scene.objects[a].box, around = vision::bounds(mask);
      EXPECT_GT(scene.seen[a], 0);
      EXPECT_EQ(vision::intersection(around, b), around) << "beyond the box";
      for (size_t c = 0; c < a; ++c) EXPECT_EQ(vision::iou(mask, *scene.objects[c].mask), 0);
      // A square's pixels are all of its box but for those that later objects have.
      if (scene.objects[a].label != 1) continue;
      std::vector<uint8_t> expected(120 * 90, 0);
      for (int y = static_cast<int>(b.y0); y < static_cast<int>(b.y1); ++y)
        for (int x = static_cast<int>(b.x0); x < static_cast<int>(b.x1); ++x)
          expected[static_cast<size_t>(y * 120 + x)] = 1;
      for (size_t later = a + 1; later < scene.objects.size(); ++later) {
        const std::vector<uint8_t> other = vision::pixels(*scene.objects[later].mask);
        for (size_t p = 0; p < expected.size(); ++p) expected[p] = expected[p] && !other[p];
      }
      EXPECT_EQ(vision::pixels(mask), expected);
      hidden += scene.seen[a] < 1;
      EXPECT_NEAR(scene.seen[a], static_cast<float>(vision::area(mask)) / vision::area(b), 1e-5f);
    }
  }
  EXPECT_GT(hidden, 5);
}

TEST(Scenes, EnoughOfEveryObjectIsSeen) {
  const MemoryDataset data = pictures();
  SceneOptions options{.width = 100, .height = 100, .min_objects = 10, .max_objects = 10, .max_overlap = 1};
  float least = 1;
  for (int i = 0; i < 20; ++i)
    for (const float seen : make_scene(data, options, i).seen) least = std::min(least, seen);
  EXPECT_LT(least, 0.2f);
  options.min_seen = 0.6f;
  int64_t objects = 0;
  for (int i = 0; i < 20; ++i)
    for (const float seen : make_scene(data, options, i).seen) {
      EXPECT_GE(seen, 0.6f);
      ++objects;
    }
  EXPECT_GT(objects, 60);
}

// Texture and clutter change the ground and nothing else.
TEST(Scenes, TheGroundDoesNotMoveTheObjects) {
  const MemoryDataset data = pictures();
  const SceneOptions plain{.masks = true};
  SceneOptions rich = plain;
  rich.textured = true;
  rich.clutter = 9;
  int64_t changed = 0, of_objects = 0, all = 0;
  for (int i = 0; i < 10; ++i) {
    const Scene a = make_scene(data, plain, i), b = make_scene(data, rich, i);
    EXPECT_EQ(b.image.pixels, make_scene(data, rich, i).image.pixels);
    ASSERT_EQ(a.objects.size(), b.objects.size());
    for (size_t k = 0; k < a.objects.size(); ++k) {
      EXPECT_EQ(a.objects[k].box, b.objects[k].box);
      const std::vector<uint8_t> mask = vision::pixels(*a.objects[k].mask);
      for (size_t p = 0; p < mask.size(); ++p)
        if (mask[p]) {
          // Where the ground shines through, by less than a half.
          of_objects += std::abs(a.image.pixels[3 * p] - b.image.pixels[3 * p]) > 128;
        }
    }
    for (size_t p = 0; p < a.image.pixels.size(); ++p) changed += a.image.pixels[p] != b.image.pixels[p], ++all;
  }
  EXPECT_EQ(of_objects, 0);
  EXPECT_GT(changed, all / 2);
}

TEST_F(SceneFolder, CocoHasBoxesAndMasks) {
  const MemoryDataset data = pictures();
  const SceneOptions options{
      .width = 96, .height = 64, .min_objects = 2, .max_side = 40, .max_overlap = 0.3f, .masks = true};
  write_scenes(data, options, SceneFormat::kCoco, {{"train", 4}}, directory_, 10);
  const auto json = nlohmann::json::parse(read_file(directory_ / "annotations" / "instances_train.json"));
  ASSERT_EQ(json["images"].size(), 4u);
  ASSERT_EQ(json["categories"].size(), 2u);
  EXPECT_EQ(json["categories"][1]["name"], "square");
  size_t next = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const auto& image = json["images"][static_cast<size_t>(i)];
    const Scene scene = make_scene(data, options, 10 + i);
    const std::string file = image["file_name"];
    EXPECT_EQ(file, str("0000", 10 + i, ".png"));
    const std::string bytes = read_file(directory_ / "train" / file);
    EXPECT_EQ(decode_image(std::as_bytes(std::span(bytes))).pixels, scene.image.pixels);
    const std::string instances = read_file(directory_ / "train_instance" / file);
    const std::string classes = read_file(directory_ / "train_semantic" / file);
    const Image numbers = decode_image(std::as_bytes(std::span(instances)), {.channels = 1});
    const Image labels = decode_image(std::as_bytes(std::span(classes)), {.channels = 1});
    for (size_t k = 0; k < scene.objects.size(); ++k, ++next) {
      const vision::Object& object = scene.objects[k];
      const auto& a = json["annotations"].at(next);
      EXPECT_EQ(a["image_id"], image["id"]);
      EXPECT_EQ(a["category_id"], object.label + 1);
      EXPECT_EQ(a["bbox"], nlohmann::json({object.box.x0, object.box.y0, object.box.width(), object.box.height()}));
      std::vector<vision::Polygon> polygons = a["segmentation"];
      const vision::Mask mask = vision::mask_of_polygons(polygons, 64, 96);
      EXPECT_EQ(mask, *object.mask);
      EXPECT_EQ(a["area"], vision::area(mask));
      const std::vector<uint8_t> set = vision::pixels(mask);
      for (size_t p = 0; p < set.size(); ++p) {
        ASSERT_EQ(numbers.pixels[p] == k + 1, set[p] != 0);
        if (set[p]) {
          ASSERT_EQ(labels.pixels[p], object.label + 1);
        }
      }
    }
  }
  EXPECT_EQ(json["annotations"].size(), next);
}

TEST_F(SceneFolder, ObjectsWithHolesAreRunsOfPixels) {
  std::string ring(64, '\xff');
  for (size_t i = 0; i < 64; ++i)
    if (i % 8 > 1 && i % 8 < 6 && i / 8 > 1 && i / 8 < 6) ring[i] = '\0';
  const MemoryDataset data({.parts = {{.file = "made", .bytes = ring, .stride = 64, .count = 1}},
                            .height = 8,
                            .width = 8,
                            .channels = 1,
                            .labels = {0},
                            .class_names = {"ring"}},
                           0);
  const SceneOptions options{
      .width = 96, .height = 64, .min_objects = 1, .max_objects = 1, .min_side = 30, .max_side = 40, .masks = true};
  write_scenes(data, options, SceneFormat::kCoco, {{"train", 1}}, directory_);
  const auto json = nlohmann::json::parse(read_file(directory_ / "annotations" / "instances_train.json"));
  const auto& segmentation = json["annotations"].at(0)["segmentation"];
  EXPECT_EQ(segmentation["size"], nlohmann::json({64, 96}));
  EXPECT_EQ(vision::parse_rle(segmentation["counts"].get<std::string>(), 64, 96),
            *make_scene(data, options, 0).objects.at(0).mask);
}

TEST(Scenes, RefuseWhatCannotBe) {
  const MemoryDataset data = pictures(), unlabeled = pictures(false);
  EXPECT_THAT(message_of([&] { make_scene(data, {.max_side = 300}, 0); }), HasSubstr("28 to 300 pixels"));
  EXPECT_THAT(message_of([&] { make_scene(data, {.min_objects = 5, .max_objects = 4}, 0); }),
              HasSubstr("5 to 4 objects"));
  EXPECT_THAT(message_of([&] { make_scene(unlabeled, {}, 0); }), HasSubstr("labels"));
  EXPECT_THAT(message_of([&] { make_scene(data, {.min_seen = 2}, 0); }), HasSubstr("min_seen 2"));
  EXPECT_THAT(message_of([&] {
                write_scenes(data, {.max_objects = 256, .masks = true}, SceneFormat::kVoc, {{"train", 1}}, "unwritten");
              }),
              HasSubstr("room for 255"));
}

}  // namespace
}  // namespace octet::data
