#include "data/objects/kitti.h"

#include <cmath>

#include "data/image.h"
#include "object_folder.h"

namespace octet::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string kitti_error(const std::string& text) {
  return decode_error([&] { parse_kitti(text); });
}

TEST(Kitti, ReadsAllFields) {
  const AnnotationFile file = parse_kitti(
      "Car 0.25 0 -1.58 587.01 173.33 614.12 200.12 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\r\n"
      "\n"
      "Van 0 2 0 10 20 30 40 0 0 0 0 0 0 0 0.93\n"
      "DontCare -1 -1 -10 5 5 5 9 -1 -1 -1 -1000 -1000 -1000 -10");
  ASSERT_EQ(file.objects.size(), 3u);
  EXPECT_EQ(file.objects[0], (AnnotatedObject{.class_name = "Car",
                                              .box = {587.01f, 173.33f, 614.12f, 200.12f},
                                              .kitti = {.truncation = 0.25f,
                                                        .occlusion = 0,
                                                        .angle = -1.58f,
                                                        .world = {1.65f, 1.67f, 3.64f, -0.65f, 1.71f, 46.70f, -1.59f}},
                                              .place = 1}));
  EXPECT_EQ(
      file.objects[1],
      (AnnotatedObject{
          .class_name = "Van", .box = {10, 20, 30, 40}, .difficult = true, .kitti = {.occlusion = 2}, .place = 3}));
  EXPECT_EQ(file.objects[2].class_name, "DontCare");
  EXPECT_TRUE(parse_kitti("").objects.empty());
  // Numbers that no box can have are left to those who count them.
  EXPECT_TRUE(std::isnan(parse_kitti("Car 0 0 0 nan 2 3 4 0 0 0 0 0 0 0").objects[0].box.x0));
  EXPECT_TRUE(std::isinf(parse_kitti("Car 0 0 0 1e99 2 3 4 0 0 0 0 0 0 0").objects[0].box.x0));
}

TEST(Kitti, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(kitti_error("\nCar 0 0"), HasSubstr("line 2: has 3 fields, KITTI's labels have 15"));
  EXPECT_THAT(kitti_error("Car 0 0 0 1 2 x 4 0 0 0 0 0 0 0"), HasSubstr("x1 (field 7) is 'x'"));
  EXPECT_THAT(kitti_error("Car 0 0 0 1 2 3px 4 0 0 0 0 0 0 0"), HasSubstr("x1 (field 7) is '3px'"));
}

class KittiFolderTest : public ObjectFolderTest {
 protected:
  std::string error() {
    return message_of([&] { open_dataset({.format = "kitti", .path = directory_}); });
  }
};

TEST_F(KittiFolderTest, Reads) {
  picture("train/image_2/000.png");
  picture("train/image_2/001.png");
  put("train/label_2/000.txt", kitti("car", "0 0 4 3") + kitti("DontCare", "0 0 1 1") + kitti("bus", "1 1 2 2"));
  put("train/label_2/001.txt", "");
  const DatasetOptions options{.format = "kitti", .path = directory_, .split = "train"};
  const auto data = open_dataset(options);
  EXPECT_THAT(data->class_names(), ElementsAre("bus", "car"));
  EXPECT_THAT(classes(*data, 0), ElementsAre("car", "bus"));
  EXPECT_THAT(objects(*data, 1), testing::IsEmpty());
  EXPECT_THAT(data->findings().sentences(), testing::IsEmpty());
  EXPECT_EQ(read_kitti(options).images[0].name, "train/image_2/000");
  const uint64_t hash = data->content_hash();
  put("train/label_2/001.txt", kitti("car", "0 0 4 3"));
  EXPECT_NE(open_dataset(options)->content_hash(), hash);
}

TEST_F(KittiFolderTest, LowersNamesOnlyWhenAsked) {
  picture("images/0.png");
  put("labels/0.txt", kitti("Car", "0 0 4 3") + kitti("car", "1 1 4 3") + kitti("dontcare", "0 0 1 1"));
  EXPECT_THAT(open_dataset({.format = "kitti", .path = directory_})->class_names(), ElementsAre("Car", "car"));
  const auto lower = open_dataset({.format = "kitti", .path = directory_, .lower_case_classes = true});
  EXPECT_THAT(classes(*lower, 0), ElementsAre("car", "car"));
}

TEST_F(KittiFolderTest, CountsWhatCannotBeUsedWithFileAndLine) {
  for (const char* name : {"a", "b", "c", "d", "e"}) picture(str("images/", name, ".png"));
  put("images/f.png", "no picture");
  put("labels/a.txt", kitti("car", "0 0 4 3") + kitti("car", "3 3 3 5") + kitti("car", "5 1 2 4") +
                          kitti("car", "nan 1 2 4") + kitti("car", "9 0 12 5") + kitti("car", "-4 0 4 4") +
                          kitti("car", "-1 0 8 6") + kitti("car", "0 0 2e9 5"));
  put("labels/b.txt", "car 1 2");
  put("labels/c.txt", kitti("car", "0 0 1 1"));
  put("labels/f.txt", kitti("car", "0 0 1 1"));
  std::filesystem::create_directories(directory_ / "labels/e.txt");
  const auto data = open_dataset({.format = "kitti", .path = directory_});
  EXPECT_EQ(data->size(), 2);
  EXPECT_EQ(objects(*data, 0).size(), 3u);
  const std::string folder = (directory_ / "labels").string();
  EXPECT_THAT(
      data->findings().sentences(),
      ElementsAre(
          AllOf(HasSubstr("2 annotations cannot be read, and their images are left out: " + folder +
                          "/b.txt: line 1: has 3 fields"),
                HasSubstr(folder + "/e.txt")),
          AllOf(HasSubstr("1 image has no annotation and is left out: "), HasSubstr("d.png")),
          AllOf(HasSubstr("1 image file cannot be read and is left out: "), HasSubstr("f.png: its first bytes")),
          HasSubstr("2 boxes have coordinates that are no finite numbers of pixels and are left out: " + folder +
                    "/a.txt, line 4 (car: nan, 1, 2, 4); " + folder + "/a.txt, line 8 (car: 0, 0, 2e+09, 5)"),
          HasSubstr("2 boxes have x0 >= x1 or y0 >= y1 and are left out: " + folder +
                    "/a.txt, line 2 (car: 3, 3, 3, 5); " + folder + "/a.txt, line 3 (car: 5, 1, 2, 4)"),
          HasSubstr("1 box lies outside of its image and is left out: " + folder + "/a.txt, line 5 (car: 9, 0, 12, 5)"),
          HasSubstr("1 box reaches beyond its image and is cut: " + folder + "/a.txt, line 6 (car: -4, 0, 4, 4)")));
}

TEST_F(KittiFolderTest, StopsWhereNothingCanBeUsed) {
  EXPECT_THAT(error(), HasSubstr("has no directory 'image_2' or 'images'"));
  std::filesystem::create_directories(directory_ / "images");
  EXPECT_THAT(error(), HasSubstr("has no directory 'label_2' or 'labels'"));
  std::filesystem::create_directories(directory_ / "labels");
  EXPECT_THAT(error(), HasSubstr("has no images (JPEG"));
  picture("images/a.png");
  EXPECT_THAT(error(), HasSubstr("holds no image that can be used; 1 image has no annotation"));
  put("labels/a.txt", "");
  EXPECT_THAT(error(), HasSubstr("has no object in any of its 1 annotations"));
  put("labels/a.txt", kitti("car", "0 0 4 x"));
  EXPECT_THAT(error(), HasSubstr("labels/a.txt: line 1: y1 (field 8) is 'x'"));
  put("labels/a.txt", kitti("car", "4 4 4 9"));
  EXPECT_THAT(error(), HasSubstr("has no object in any of its 1 annotations; 1 box has x0 >= x1"));
  picture("images/a.jpg");
  EXPECT_THAT(error(), HasSubstr("which one is annotated?"));
}

}  // namespace
}  // namespace octet::data
