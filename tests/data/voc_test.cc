#include "data/objects/voc.h"

#include "data/class_order.h"
#include "data/image.h"
#include "object_folder.h"

namespace octet::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string voc_error(const std::string& xml) {
  return decode_error([&] { parse_voc(xml); });
}

TEST(Voc, Reads) {
  const AnnotationFile file = parse_voc(R"(<?xml version="1.0"?>
<annotation><size><width>650</width><height>417</height><depth>3</depth></size>
  <object><name> cat </name><difficult>1</difficult><bndbox><xmin>81</xmin><ymin>88</ymin><xmax>522</xmax><ymax>408</ymax></bndbox></object>
  <object><name>dog</name><bndbox><xmax>650</xmax><xmin>1</xmin><ymin>1</ymin><ymax>417.5</ymax></bndbox></object>
</annotation>)");
  EXPECT_EQ(file.width, 650);
  EXPECT_EQ(file.height, 417);
  ASSERT_EQ(file.objects.size(), 2u);
  EXPECT_EQ(file.objects[0],
            (AnnotatedObject{.class_name = "cat", .box = {80, 87, 522, 408}, .difficult = true, .place = 3}));
  EXPECT_EQ(file.objects[1], (AnnotatedObject{.class_name = "dog", .box = {0, 0, 650, 417.5f}, .place = 4}));
}

TEST(Voc, SaysWhatIsWrongAndWhere) {
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
  EXPECT_EQ(parse_voc("<annotation><size><width>1e30</width><height>2</height></size></annotation>").width, 0);
}

TEST(Voc, WritesWhatItReads) {
  const AnnotationFile file{.width = 320,
                            .height = 192,
                            .objects = {{.class_name = "a < b", .box = {3, 4, 50, 60}, .difficult = true},
                                        {.class_name = "c", .box = {0, 0, 320, 192}}}};
  AnnotationFile again = parse_voc(write_voc(file, "0001.png"));
  for (AnnotatedObject& object : again.objects) object.place = 0;
  EXPECT_EQ(again.width, 320);
  EXPECT_EQ(again.height, 192);
  EXPECT_EQ(again.objects, file.objects);
}

class VocFolderTest : public ObjectFolderTest {};

TEST_F(VocFolderTest, Reads) {
  for (const char* name : {"b", "a"}) {
    picture(str("JPEGImages/", name, ".png"));
    put(str("Annotations/", name, ".xml"),
        write_voc({.width = 8,
                   .height = 6,
                   .objects = {{.class_name = name, .box = {1, 2, 5, 6}, .difficult = *name == 'b'}}},
                  str(name, ".png")));
  }
  put("ImageSets/Main/val.txt", "b\n");
  const auto all = open_dataset({.format = "voc", .path = directory_});
  EXPECT_EQ(all->size(), 2);
  EXPECT_THAT(all->class_names(), ElementsAre("a", "b"));
  const Sample sample = all->get(1);
  EXPECT_EQ(sample.image.width, 8);
  ASSERT_EQ(sample.truth.objects.size(), 1u);
  EXPECT_EQ(sample.truth.objects[0].label, 1);
  EXPECT_EQ(sample.truth.objects[0].box, (vision::Box{1, 2, 5, 6}));
  EXPECT_TRUE(sample.truth.objects[0].difficult);
  EXPECT_EQ(sample.truth.label, -1);
  const auto val = open_dataset({.format = "voc", .path = directory_, .split = "val"});
  EXPECT_EQ(val->size(), 1);
  EXPECT_THAT(val->class_names(), ElementsAre("b"));
  // By the names of the training images the only class of this half has the number 1.
  EXPECT_EQ(label_by_names(open_dataset({.format = "voc", .path = directory_, .split = "val"}), {"a", "b"}, "val",
                           "of training")
                ->truth(0)
                .objects[0]
                .label,
            1);
  // The same with folders of one's own.
  const auto apart =
      open_dataset({.format = "voc", .path = directory_ / "JPEGImages", .labels = directory_ / "Annotations"});
  EXPECT_EQ(apart->size(), 2);
  put("ImageSets/Main/test.txt", "b\nlost\n");
  EXPECT_EQ(open_dataset({.format = "voc", .path = directory_, .split = "test"})->findings().count(Finding::kNoImage),
            1);
}

TEST_F(VocFolderTest, SaysWhatIsMissing) {
  const auto error = [&](const std::string& split = "") {
    return message_of([&] { open_dataset({.format = "voc", .path = directory_, .split = split}); });
  };
  EXPECT_THAT(error(), HasSubstr("has no directory 'JPEGImages'"));
  picture("JPEGImages/c.png");
  std::filesystem::create_directories(directory_ / "Annotations");
  put("ImageSets/Main/val.txt", "d\n");
  EXPECT_THAT(error("val"), HasSubstr("1 annotation names an image that is not there and is left out: " +
                                      (directory_ / "JPEGImages" / "d").string()));
}

}  // namespace
}  // namespace octet::data
