#include "data/annotation_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/image.h"

namespace octet::data {
namespace {

using testing::HasSubstr;

std::string voc_error(const std::string& xml) {
  try {
    parse_voc(xml);
  } catch (const DecodeError& error) {
    return error.what();
  }
  return "";
}
std::string kitti_error(const std::string& text) {
  try {
    parse_kitti(text);
  } catch (const DecodeError& error) {
    return error.what();
  }
  return "";
}

TEST(AnnotationFile, ReadsVoc) {
  const AnnotationFile file = parse_voc(R"(<?xml version="1.0"?>
<annotation><size><width>650</width><height>417</height><depth>3</depth></size>
  <object><name> cat </name><difficult>1</difficult><bndbox><xmin>81</xmin><ymin>88</ymin><xmax>522</xmax><ymax>408</ymax></bndbox></object>
  <object><name>dog</name><bndbox><xmax>650</xmax><xmin>1</xmin><ymin>1</ymin><ymax>417.5</ymax></bndbox></object>
  <object><name>dot</name><bndbox><xmin>9</xmin><ymin>9</ymin><xmax>8</xmax><ymax>20</ymax></bndbox></object>
</annotation>)");
  EXPECT_EQ(file.width, 650);
  EXPECT_EQ(file.height, 417);
  ASSERT_EQ(file.objects.size(), 2u);
  EXPECT_EQ(file.objects[0], (AnnotatedObject{"cat", {80, 87, 522, 408}, true}));
  EXPECT_EQ(file.objects[1], (AnnotatedObject{"dog", {0, 0, 650, 417.5f}, false}));
  EXPECT_EQ(file.empty_boxes, 1);
}

TEST(AnnotationFile, SaysWhatIsWrongWithVocAndWhere) {
  EXPECT_THAT(voc_error(""), HasSubstr("is no XML"));
  EXPECT_THAT(voc_error("<annotation>\n<object>\n</annotation>"), HasSubstr("line 3: is no XML"));
  EXPECT_THAT(voc_error("<kml/>"), HasSubstr("<kml>, expected <annotation>"));
  EXPECT_THAT(voc_error("<annotation>\n<object><bndbox/></object></annotation>"),
              HasSubstr("line 2: <object> has no <name>"));
  EXPECT_THAT(voc_error("<annotation><object><name>a</name></object></annotation>"), HasSubstr("'a' has no <bndbox>"));
  EXPECT_THAT(voc_error("<annotation><object><name>a</name>\n<bndbox><xmin>1</xmin></bndbox></object></annotation>"),
              HasSubstr("line 2: <bndbox> has no <ymin>"));
  EXPECT_THAT(voc_error("<annotation><size><width>wide</width><height>2</height></size></annotation>"),
              HasSubstr("<width> is 'wide', expected a number"));
  EXPECT_THAT(voc_error("<annotation><size><width>1e30</width><height>2</height></size></annotation>"),
              HasSubstr("1e30"));
}

TEST(AnnotationFile, ReadsKitti) {
  const AnnotationFile file = parse_kitti(
      "Car 0.00 0 -1.58 587.01 173.33 614.12 200.12 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\r\n"
      "\n"
      "Van 0 2 0 10 20 30 40 0 0 0 0 0 0 0 0.93\n"
      "DontCare -1 -1 -10 5 5 5 9 -1 -1 -1 -1000 -1000 -1000 -10");
  ASSERT_EQ(file.objects.size(), 2u);
  EXPECT_EQ(file.objects[0], (AnnotatedObject{"Car", {587.01f, 173.33f, 614.12f, 200.12f}, false}));
  EXPECT_EQ(file.objects[1], (AnnotatedObject{"Van", {10, 20, 30, 40}, true}));
  EXPECT_EQ(file.empty_boxes, 1);
  EXPECT_TRUE(parse_kitti("").objects.empty());
}

TEST(AnnotationFile, SaysWhatIsWrongWithKittiAndWhere) {
  EXPECT_THAT(kitti_error("\nCar 0 0"), HasSubstr("line 2: has 3 fields"));
  EXPECT_THAT(kitti_error("Car 0 0 0 1 2 x 4 0 0 0 0 0 0 0"), HasSubstr("x1 (field 7) is 'x'"));
  EXPECT_THAT(kitti_error("Car 0 0 0 nan 2 3 4 0 0 0 0 0 0 0"), HasSubstr("'nan'"));
}

TEST(AnnotationFile, WritesWhatItReads) {
  const AnnotationFile file{
      .width = 320, .height = 192, .objects = {{"a < b", {3, 4, 50, 60}, true}, {"c", {0, 0, 320, 192}, false}}};
  const AnnotationFile again = parse_voc(write_voc(file, "0001.png"));
  EXPECT_EQ(again.width, 320);
  EXPECT_EQ(again.height, 192);
  EXPECT_EQ(again.objects, file.objects);
}

}  // namespace
}  // namespace octet::data
