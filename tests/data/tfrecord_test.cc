#include "data/objects/tfrecord.h"

#include "base/records.h"
#include "data/image.h"
#include "data/objects/example.h"
#include "example_bytes.h"
#include "object_folder.h"

namespace octet::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string example_error(const std::string& features) {
  return decode_error([&] { parse_example(field(1, features)); });
}

Example two_objects() {
  return {.id = "image_2/7",
          .annotation = {
              .width = 8,
              .height = 6,
              .objects = {
                  {.class_name = "car",
                   .box = {0.5f, 1, 4, 5.25f},
                   .difficult = true,
                   .kitti = {.truncation = 0.5f, .occlusion = 2, .angle = -1.5f, .world = {1, 2, 3, -4, 5, 6, 0.25f}},
                   .place = 1},
                  {.class_name = "van", .box = {1, 1, 2, 2}, .place = 2}}}};
}

TEST(Example, ComesBack) {
  const Example example = two_objects();
  const Example again = parse_example(write_example(example));
  EXPECT_EQ(again.id, example.id);
  EXPECT_EQ(again.annotation.width, 8);
  EXPECT_EQ(again.annotation.height, 6);
  EXPECT_EQ(again.annotation.objects, example.annotation.objects);
  // What KITTI's fields cannot say.
  Example other{.id = "a", .annotation = {.objects = {{.class_name = "x", .difficult = true, .crowd = true}}}};
  const AnnotatedObject object = parse_example(write_example(other)).annotation.objects.at(0);
  EXPECT_TRUE(object.difficult);
  EXPECT_TRUE(object.crowd);
  EXPECT_EQ(object.kitti.occlusion, 1);
  other.annotation.objects.clear();
  EXPECT_TRUE(parse_example(write_example(other)).annotation.objects.empty());
}

TEST(Example, ReadsListsThatAreNotPacked) {
  const std::string one("\x0d\0\0\x80\x3f", 5), three("\x0d\0\0\x40\x40", 5);
  std::string features = feature("frame/id", 1, field(1, "a")) + feature("target/object_class", 1, field(1, "car")) +
                         feature("target/occlusion", 3, std::string("\x08\x01", 2)) + feature("else", 3, "");
  for (const char* side : {"x1", "y1"}) features += feature(str("target/coordinates_", side), 2, one);
  for (const char* side : {"x2", "y2"}) features += feature(str("target/coordinates_", side), 2, three);
  const Example example = parse_example(field(1, features));
  EXPECT_THAT(example.annotation.objects,
              ElementsAre(AnnotatedObject{
                  .class_name = "car", .box = {1, 1, 3, 3}, .difficult = true, .kitti = {.occlusion = 1}, .place = 1}));
}

TEST(Example, SaysWhatIsWrong) {
  EXPECT_THAT(decode_error([] { parse_example("\x0a\x7f"); }), HasSubstr("is no tf.train.Example"));
  EXPECT_THAT(example_error(""), HasSubstr("has no 'frame/id'"));
  const std::string id = feature("frame/id", 1, field(1, "a")),
                    car = feature("target/object_class", 1, field(1, "car"));
  EXPECT_THAT(example_error(id + car), HasSubstr("has 0 numbers in 'target/coordinates_x1', and 1 objects"));
  EXPECT_THAT(example_error(id + feature("frame/encoded", 1, field(1, "png"))), HasSubstr("holds the image itself"));
}

// protozero only asserts wire types, and not in release builds.
TEST(Example, ChecksTheTypesOfItsFields) {
  for (const std::string_view bytes :
       {std::string_view("\x08\x01", 2), std::string_view("\x0a\x02\x08\x01", 4),
        std::string_view("\x0a\x04\x0a\x02\x08\x01", 6), std::string_view("\x0a\x04\x0a\x02\x10\x01", 6)}) {
    try {
      parse_example(bytes);
      ADD_FAILURE() << "taken";
    } catch (const DecodeError& error) {
      EXPECT_NE(std::string(error.what()).find("is written as another type"), std::string::npos) << error.what();
    }
  }
}

TEST(RecordFiles, NamesAreThoseOfTao) {
  EXPECT_EQ(record_file_name("kitti", 0, 2, 3, 10), "kitti-fold-000-of-002-shard-00003-of-00010");
  EXPECT_EQ(record_file_name("kitti", 1, 2, 0, 0), "kitti-fold-001-of-002");
  EXPECT_EQ(record_file_name("kitti", 0, 0, 0, 0), "kitti");
  const auto name = fold_of("kitti-fold-001-of-012-shard-00003-of-00010");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->fold, 1);
  EXPECT_EQ(name->folds, 12);
  EXPECT_FALSE(fold_of("manifold-1"));
}

class TfrecordTest : public ObjectFolderTest {
 protected:
  void SetUp() override {
    ObjectFolderTest::SetUp();
    for (const char* name : {"1", "2", "3"}) picture(str("data/image_2/", name, ".png"));
    put("records/kitti-fold-000-of-002", record("image_2/1", "car"));
    put("records/kitti-fold-001-of-002-shard-00000-of-00002", record("image_2/2", "van"));
    put("records/kitti-fold-001-of-002-shard-00001-of-00002", record("image_2/3", "car") + record("lost", "car"));
    put("records/kitti_warning.json", "{}");
  }
  static std::string record(const std::string& id, const std::string& class_name) {
    Example example = two_objects();
    example.id = id;
    example.annotation.objects = {{.class_name = class_name, .box = {1, 1, 4, 4}},
                                  {.class_name = "dontcare", .box = {1, 1, 4, 4}}};
    return framed_record(write_example(example));
  }
  DatasetOptions options(const std::string& labels = "records") {
    return {.format = "tfrecord", .path = directory_ / "data", .labels = directory_ / labels};
  }
  std::string error(const DatasetOptions& options) {
    return message_of([&] { open_dataset(options); });
  }
};

TEST_F(TfrecordTest, ReadsFoldersFilesAndPatterns) {
  const auto all = open_dataset(options());
  EXPECT_EQ(all->size(), 3);
  EXPECT_THAT(all->class_names(), ElementsAre("car", "van"));
  EXPECT_EQ(all->name(0), (directory_ / "data/image_2/1.png").string());
  EXPECT_EQ(all->get(2).image.width, 8);
  EXPECT_THAT(all->findings().sentences(),
              ElementsAre(HasSubstr("1 annotation names an image that is not there and is left out: " +
                                    (directory_ / "records/kitti-fold-001-of-002-shard-00001-of-00002").string() +
                                    ", record 2")));
  EXPECT_EQ(open_dataset(options("records/kitti-fold-000*"))->size(), 1);
  EXPECT_EQ(open_dataset(options("records/*-shard-0000?-of-*"))->size(), 2);
  EXPECT_EQ(open_dataset(options("records/kitti-fold-000-of-002"))->size(), 1);
  EXPECT_THAT(error(options("records/coco*")), HasSubstr("there is no such file"));
  EXPECT_THAT(error({.format = "tfrecord", .path = directory_ / "data"}), HasSubstr("needs `labels`"));
}

TEST_F(TfrecordTest, LooksForTheGivenEndingOnly) {
  DatasetOptions wanted = options("records/kitti-fold-000-of-002");
  wanted.image_extension = "jpg";
  EXPECT_THAT(error(wanted), HasSubstr("image_2/1.jpg)"));
  wanted.image_extension = ".png";
  EXPECT_EQ(open_dataset(wanted)->size(), 1);
}

TEST_F(TfrecordTest, ChoosesFoldsByTheNamesOfFiles) {
  DatasetOptions part = options();
  part.fold = FoldChoice{.fold = 0};
  EXPECT_THAT(open_dataset(part)->class_names(), ElementsAre("car"));
  part.fold->others = true;
  EXPECT_EQ(open_dataset(part)->size(), 2);
  part.fold->fold = 2;
  EXPECT_THAT(error(part), HasSubstr("is of 2 folds, 0 to 1; data.validation_fold is 2"));
  put("records/old", "");
  EXPECT_THAT(error(part), HasSubstr("-fold-000-of-002"));
  // A validation set that would be empty stops before training, not after it.
  DatasetOptions empty = options("records/kitti-fold-001*");
  empty.fold = FoldChoice{.fold = 0};
  EXPECT_THAT(error(empty), HasSubstr("has no file of fold 0; it would be empty"));
}

TEST_F(TfrecordTest, DamageIsAnErrorWithItsPlace) {
  std::string bytes = record("image_2/1", "car") + record("image_2/2", "car");
  bytes[bytes.size() - 20] ^= 4;
  put("records/kitti-fold-000-of-002", bytes);
  EXPECT_THAT(error(options()), HasSubstr("kitti-fold-000-of-002: record 2 (byte "));
}

}  // namespace
}  // namespace octet::data
