#include "data/annotated_images.h"

#include <gmock/gmock.h>

#include "data/annotation_file.h"
#include "data/class_order.h"
#include "data/image_write.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class AnnotatedImagesTest : public DirectoryTest {
 protected:
  void picture(const std::string& name, int height = 6, int width = 8) {
    std::filesystem::create_directories((directory_ / name).parent_path());
    write_png(directory_ / name, test_image(height, width, 3));
  }
  void text(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((directory_ / name).parent_path());
    put(name, content);
  }
  static std::string kitti(const std::string& name, const std::string& box) {
    return name + " 0.0 0 0.0 " + box + " 0 0 0 0 0 0 0\n";
  }
};

TEST_F(AnnotatedImagesTest, ReadsVoc) {
  for (const char* name : {"b", "a"}) {
    picture(str("JPEGImages/", name, ".png"));
    text(str("Annotations/", name, ".xml"),
         write_voc({.width = 8,
                    .height = 6,
                    .objects = {{.class_name = name, .box = {1, 2, 5, 6}, .difficult = *name == 'b'}}},
                   str(name, ".png")));
  }
  text("ImageSets/Main/val.txt", "b\n");
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
}

TEST_F(AnnotatedImagesTest, ReadsKitti) {
  picture("train/image_2/000.png");
  picture("train/image_2/001.png");
  text("train/label_2/000.txt", kitti("car", "0 0 4 3") + kitti("DontCare", "0 0 1 1") + kitti("bus", "1 1 2 2"));
  text("train/label_2/001.txt", "");
  const auto data = open_dataset({.format = "kitti", .path = directory_, .split = "train"});
  EXPECT_THAT(data->class_names(), ElementsAre("bus", "car"));
  ASSERT_EQ(data->truth(0).objects.size(), 2u);
  EXPECT_EQ(data->truth(0).objects[0].label, 1);
  EXPECT_TRUE(data->truth(1).objects.empty());
  const uint64_t hash = data->content_hash();
  text("train/label_2/001.txt", kitti("car", "0 0 4 3"));
  EXPECT_NE(open_dataset({.format = "kitti", .path = directory_, .split = "train"})->content_hash(), hash);
}

TEST_F(AnnotatedImagesTest, SaysWhatIsWrong) {
  const auto error = [&](const char* format, const std::string& split = "") {
    return message_of([&] { open_dataset({.format = format, .path = directory_, .split = split}); });
  };
  EXPECT_THAT(error("voc"), HasSubstr("has no directory 'JPEGImages'"));
  std::filesystem::create_directories(directory_ / "images");
  EXPECT_THAT(error("kitti"), HasSubstr("has no directory 'label_2' or 'labels'"));
  std::filesystem::create_directories(directory_ / "labels");
  EXPECT_THAT(error("kitti"), HasSubstr("has no images (JPEG"));
  picture("images/a.png");
  EXPECT_THAT(error("kitti"), HasSubstr("has no annotation of any of the 1 images"));
  text("labels/a.txt", "");
  EXPECT_THAT(error("kitti"), HasSubstr("has no object in any of its 1 files"));
  text("labels/a.txt", kitti("car", "0 0 4 x"));
  EXPECT_THAT(error("kitti"), AllOf(HasSubstr("labels/a.txt: line 1: y1 (field 8) is 'x'")));
  picture("images/a.jpg");
  EXPECT_THAT(error("kitti"), HasSubstr("which one is annotated?"));
  picture("JPEGImages/c.png");
  std::filesystem::create_directories(directory_ / "Annotations");
  text("ImageSets/Main/val.txt", "d\n");
  EXPECT_THAT(error("voc", "val"), HasSubstr("JPEGImages/d: there is no image of that name"));
}

}  // namespace
}  // namespace octet::data
