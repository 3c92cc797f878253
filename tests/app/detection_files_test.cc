#include "app/detection_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/scratch_folder.h"
#include "base/error.h"
#include "base/files.h"
#include "data/dataset.h"

namespace octet::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Images of 40 x 30 gray pixels under these names.
class Named : public data::Dataset {
 public:
  explicit Named(std::vector<std::string> names) : names_(std::move(names)) {}
  int64_t size() const override { return static_cast<int64_t>(names_.size()); }
  data::Sample get(int64_t) const override {
    data::Image image{.height = 30, .width = 40, .channels = 1, .pixels = std::vector<uint8_t>(40 * 30, 77)};
    return {.image = std::move(image), .truth = {}};
  }
  data::Annotation truth(int64_t) const override { return {}; }
  std::string name(int64_t index) const override { return names_[static_cast<size_t>(index)]; }
  uint64_t content_hash() const override { return 0; }

 private:
  std::vector<std::string> names_;
};

vision::Object object(int label, float score, vision::Box box) {
  return {.box = box, .label = label, .score = score};
}

TEST(Kitti, SixteenFields) {
  const std::vector<vision::Object> objects = {object(0, 0.875f, {1.25f, 2, 30.5f, 20}),
                                               object(1, 12.5f, {0, 0, 640, 480}), object(7, 1, {1, 2, 3, 4})};
  EXPECT_EQ(kitti_text(objects, {"car", "traffic light"}),
            "car -1 -1 -10 1.25 2.00 30.50 20.00 -1 -1 -1 -1000 -1000 -1000 -10 0.875\n"
            "traffic_light -1 -1 -10 0.00 0.00 640.00 480.00 -1 -1 -1 -1000 -1000 -1000 -10 12.5\n"
            "7 -1 -1 -10 1.00 2.00 3.00 4.00 -1 -1 -1 -1000 -1000 -1000 -10 1\n");
}

TEST(NamesForResults, AreNeverTheSame) {
  EXPECT_THAT(names_for_results(Named({"a/1.png", "b/2.png"})), ElementsAre("1", "2"));
  EXPECT_THAT(names_for_results(Named({"x/a/1.png", "x/b/1.png", "x/b/2.png"})), ElementsAre("a/1", "b/1", "b/2"));
  EXPECT_THAT(names_for_results(Named({"x/1.png", "x/1.jpg", "x/1.jpg"})), ElementsAre("1", "1.jpg", "1.jpg_1"));
}

std::string error_of(const std::string& text) {
  try {
    parse_coco_ids(text, "val.json");
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(CocoIds, OfAnnotations) {
  const CocoIds ids = parse_coco_ids(
      R"({"images": [{"id": 7, "file_name": "val/a.jpg"}], "categories": [{"id": 18, "name": "dog"}]})", "val.json");
  EXPECT_EQ(ids.images.at("val/a.jpg"), 7);
  EXPECT_EQ(ids.categories.at("dog"), 18);
  for (const auto& [text, message] :
       {std::pair{"[", "val.json: is no JSON object"}, std::pair{"{}", "val.json: has no list 'images'"},
        std::pair{R"({"images": [{"id": "7", "file_name": "a"}]})", "val.json: images[0] has no id"},
        std::pair{R"({"images": [{"id": 7}]})", "val.json: images[0] has no id or no file_name"},
        std::pair{R"({"images": [{"id": 7, "file_name": "a"}, {"id": 8, "file_name": "a"}]})", "has 'a' twice"}})
    EXPECT_THAT(error_of(text), HasSubstr(message)) << text;
}

class DetectionFilesTest : public ScratchFolder {
 protected:
  nlohmann::json coco() const { return nlohmann::json::parse(read_file(folder_ / "coco.json")); }
};

TEST_F(DetectionFilesTest, AllThree) {
  const Named images({"photos/000000000139.jpg", "photos/b.jpg"});
  DetectionFiles files(
      {.pictures = folder_ / "drawn", .kitti = folder_ / "labels", .coco = folder_ / "coco.json", .ids = {}},
      {"cat", "dog"}, images);
  const std::vector<vision::Object> objects = {object(1, 0.9f, {1.5f, 2.25f, 11.5f, 22.5f})};
  files.add(0, objects, 0.5);
  files.add(1, {}, 0.5);
  files.finish();
  EXPECT_THAT(read_file(folder_ / "labels/000000000139.txt"), ::testing::StartsWith("dog -1 -1 -10 1.50 2.25"));
  EXPECT_EQ(read_file(folder_ / "labels/b.txt"), "");  // looked at, and nothing found
  EXPECT_TRUE(std::filesystem::exists(folder_ / "drawn/b.png"));
  const nlohmann::json results = coco();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0]["image_id"], 139);
  EXPECT_EQ(results[0]["category_id"], 2);
  EXPECT_EQ(results[0]["bbox"], nlohmann::json::parse("[1.5, 2.25, 10, 20.25]"));
  EXPECT_EQ(results[0]["score"].dump(), "0.9");  // not 0.8999999761581421
}

TEST_F(DetectionFilesTest, IdsOfAnnotations) {
  const Named images({"/data/coco/val/a.jpg", "/data/coco/val/b.jpg"});
  DetectionFiles files({.pictures = {},
                        .kitti = {},
                        .coco = folder_ / "coco.json",
                        .ids = {.images = {{"val/a.jpg", 42}}, .categories = {{"dog", 18}}}},
                       {"dog", "doge"}, images);
  const std::vector<vision::Object> dog = {object(0, 1, {0, 0, 1, 1})}, doge = {object(1, 1, {0, 0, 1, 1})};
  files.add(0, dog, 0);
  EXPECT_THAT(([&] { files.add(1, dog, 0); }), ThrowsMessage<UserError>(HasSubstr("have no image of this name")));
  EXPECT_THAT(([&] { files.add(0, doge, 0); }), ThrowsMessage<UserError>(HasSubstr("no category 'doge'")));
  files.finish();
  EXPECT_EQ(coco()[0]["image_id"], 42);
  EXPECT_EQ(coco()[0]["category_id"], 18);
}

TEST_F(DetectionFilesTest, NeitherImagesNorTruthAreReplaced) {
  write("photos/a.png", "image");
  write("labels/a.txt", "truth");
  const Named images({(folder_ / "photos/a.png").string()});
  const DetectionOutputs pictures{.pictures = folder_ / "photos", .kitti = {}, .coco = {}, .ids = {}};
  EXPECT_THAT(([&] { DetectionFiles(pictures, {}, images); }),
              ThrowsMessage<UserError>(HasSubstr("is one of the images")));
  DetectionOutputs labels{.pictures = {}, .kitti = folder_ / "labels", .coco = {}, .ids = {}};
  EXPECT_THAT(([&] { DetectionFiles(labels, {}, images); }),
              ThrowsMessage<UserError>(HasSubstr("exists; name another")));
  labels.replace = true;
  DetectionFiles(labels, {}, images).add(0, {}, 0);
  EXPECT_EQ(read_file(folder_ / "labels/a.txt"), "");
}

}  // namespace
}  // namespace octet::app
