#include "data/objects/coco.h"

#include <cmath>
#include <sstream>

#include "data/image.h"
#include "object_folder.h"
#include "vision/polygon.h"
#include "vision/rle_text.h"

namespace octet::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One image of 8 x 6 pixels with the id 7, the categories 18 (dog) and 3 (car), and these annotations.
std::string coco(const std::string& annotations, const std::string& images = "") {
  return R"({"info": {"year": 2017, "images": [{"id": 1}]}, "annotations": [)" + annotations +
         R"(], "licenses": [{"id": 1}], "images": [)" + images +
         R"({"id": 7, "file_name": "a.png", "width": 8, "height": 6, "license": 1}],
          "categories": [{"id": 18, "name": "dog", "supercategory": "animal"}, {"id": 3, "name": "car"}]})";
}
std::string annotation(const std::string& more, int id = 1) {
  return str(R"({"id": )", id, R"(, "image_id": 7, "category_id": 3, )", more, "}");
}
std::string coco_error(const std::string& json, bool masks = false) {
  return decode_error([&] { parse_coco(json, masks); });
}

TEST(Coco, ReadsAnnotationsBeforeImagesAndCategories) {
  const CocoFile file =
      parse_coco(coco(annotation(R"("bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0)") + ", " +
                          R"({"image_id": 7, "id": 5, "category_id": 18, "bbox": [0.5, 0, 2.25, 1e0], "iscrowd": 1})",
                      R"({"id": 9, "file_name": "b.png"}, )"),
                 false);
  EXPECT_THAT(file.categories, ElementsAre("car", "dog"));
  ASSERT_EQ(file.images.size(), 2u);
  EXPECT_EQ(file.images[0].file_name, "b.png");
  EXPECT_EQ(file.images[0].annotation.width, 0);
  EXPECT_THAT(file.images[0].annotation.objects, IsEmpty());
  EXPECT_EQ(file.images[1].annotation.width, 8);
  EXPECT_THAT(
      file.images[1].annotation.objects,
      ElementsAre(AnnotatedObject{.class_name = "car", .box = {1, 2, 4, 6}, .place = 1},
                  AnnotatedObject{
                      .class_name = "dog", .box = {0.5f, 0, 2.75f, 1}, .difficult = true, .crowd = true, .place = 5}));
}

TEST(Coco, ReadsOutlinesOfEveryKind) {
  const vision::Mask square = vision::mask_of_polygons(std::vector<vision::Polygon>{{1, 1, 5, 1, 5, 4, 1, 4}}, 6, 8);
  std::ostringstream runs;
  for (const uint32_t run : square.counts()) runs << (runs.tellp() > 0 ? ", " : "") << run;
  const std::string text = vision::rle_text(square);
  ASSERT_EQ(text.find_first_of("\\\""), std::string::npos);
  const std::string box = R"("bbox": [1, 1, 4, 3])", size = R"(, "size": [6, 8]})";
  const CocoFile file = parse_coco(
      coco(annotation(box + R"(, "segmentation": [[1, 1, 5, 1, 5, 4, 1, 4]])") + "," +
           annotation(box + R"(, "iscrowd": 1, "segmentation": {"counts": [)" + runs.str() + "]" + size) + "," +
           annotation(box + R"(, "segmentation": {"counts": ")" + text + "\"" + size) + "," + annotation(box)),
      true);
  const auto& objects = file.images[0].annotation.objects;
  ASSERT_EQ(objects.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(objects[i].mask) << i;
    EXPECT_EQ(*objects[i].mask, square) << i;
  }
  EXPECT_FALSE(objects[3].mask);
  EXPECT_TRUE(objects[1].crowd);
}

TEST(Coco, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(coco_error(""), HasSubstr("is no JSON of COCO"));
  EXPECT_THAT(coco_error("{\"images\": [\n{\"id\": 1,,}]}"), HasSubstr("line 2"));
  EXPECT_THAT(coco_error("[]"), HasSubstr("is no JSON object"));
  EXPECT_THAT(coco_error("{}"), HasSubstr("has no 'images'"));
  EXPECT_THAT(coco_error(R"({"images": [{"id": 1, "file_name": "a"}]})"), HasSubstr("has no 'categories'"));
  EXPECT_THAT(coco_error(coco(R"({"id": 4})")), HasSubstr("annotation 4 has no 'image_id'"));
  EXPECT_THAT(coco_error(coco(annotation(R"("bbox": [1, 2, 3])"))), HasSubstr("annotation 1: 'bbox' is [1,2,3]"));
  EXPECT_THAT(coco_error(coco(annotation(R"("bbox": [1, 2, "3", 4])"))),
              HasSubstr("'bbox' is \"3\", expected numbers"));
  EXPECT_THAT(coco_error(coco(R"({"id": 4, "image_id": 7, "category_id": 5, "bbox": [1, 2, 3, 4]})")),
              HasSubstr("annotation 4: there is no category with the id 5"));
  EXPECT_THAT(coco_error(coco("", R"({"id": 7, "file_name": "b"},)")), HasSubstr("two images with the id 7"));
  EXPECT_THAT(coco_error(coco("", R"({"id": 1.5, "file_name": "b"},)")), HasSubstr("'id' is 1.5, expected a whole"));
  const std::string box = R"("bbox": [1, 2, 3, 4], "segmentation": )";
  EXPECT_THAT(coco_error(coco(annotation(box + "[[1, 2]]")), true), HasSubstr("annotation 1: its segmentation"));
  EXPECT_THAT(coco_error(coco(annotation(box + R"({"counts": [48], "size": [8, 6]})")), true),
              HasSubstr("[height, width] = [8,6], and its image has 6 x 8"));
  EXPECT_THAT(coco_error(coco(annotation(box + R"({"counts": [47], "size": [6, 8]})")), true),
              HasSubstr("annotation 1: its segmentation"));
  EXPECT_THAT(coco_error(coco(annotation(box + "[[1, 2]]"))), IsEmpty());  // nobody looks at it
}

class CocoFolderTest : public ObjectFolderTest {};

TEST_F(CocoFolderTest, ReadsImagesBesideTheFile) {
  picture("a.png");
  const std::string lost = R"({"id": 8, "file_name": "lost.png", "width": 2, "height": 2},)";
  put("all.json", coco(annotation(R"("bbox": [1, 2, 3, 4])") + "," + annotation(R"("bbox": [1, 2, 0, 4])", 2) + "," +
                           annotation(R"("bbox": [null, 2, 1, 4])", 3) + "," +
                           R"({"id": 4, "image_id": 70, "category_id": 3, "bbox": [1, 2, 3, 4]})",
                       lost));
  const auto data = open_dataset({.format = "coco", .path = directory_, .labels = directory_ / "all.json"});
  EXPECT_THAT(data->class_names(), ElementsAre("car", "dog"));  // also the one without objects
  ASSERT_EQ(data->size(), 1);
  EXPECT_THAT(classes(*data, 0), ElementsAre("car"));
  const std::string file = (directory_ / "all.json").string();
  EXPECT_THAT(data->findings().sentences(),
              ElementsAre(HasSubstr("2 annotations name images that are not there and are left out: annotation 4 "
                                    "(image_id 70); "),
                          HasSubstr(file + ", annotation 3 (car: nan, 2, nan, 6)"),
                          HasSubstr(file + ", annotation 2 (car: 1, 2, 1, 6)")));
  put("_annotations.coco.json", coco(annotation(R"("bbox": [1, 2, 3, 4])")));
  EXPECT_EQ(open_dataset({.format = "coco", .path = directory_})->size(), 1);
  EXPECT_THAT(message_of([&] { open_dataset({.format = "coco", .path = directory_, .split = "val"}); }),
              HasSubstr("annotations/instances_val.json: there is no such file"));
}

}  // namespace
}  // namespace octet::data
