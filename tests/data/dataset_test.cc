#include "data/dataset.h"

#include <gmock/gmock.h>

#include "data/idx.h"
#include "data/selection.h"
#include "image_files.h"

namespace octet::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class IdxTest : public DirectoryTest {};
class CifarTest : public DirectoryTest {};
class ImageFolderTest : public DirectoryTest {};

std::string idx_error(const std::string& bytes) {
  return message_of([&] { parse_idx(bytes, "file.gz"); });
}

TEST_F(IdxTest, ReadsPlainAndPackedFiles) {
  const std::string images = idx_bytes({3, 2, 2}, "abcdefghijkl");
  const fs::path plain = put("images", images), packed = put("images.gz", gzip_bytes(images));
  const fs::path labels = put("labels", idx_bytes({3}, std::string("\x02\x00\x01", 3)));
  for (const fs::path& path : {plain, packed}) {
    const auto dataset = open_dataset({.format = "idx", .path = path, .labels = labels});
    ASSERT_EQ(dataset->size(), 3);
    EXPECT_THAT(dataset->class_names(), ElementsAre("0", "1", "2"));
    const Sample sample = dataset->get(1);
    EXPECT_EQ(sample.truth.label, 0);
    EXPECT_EQ(sample.image.channels, 1);
    EXPECT_THAT(sample.image.pixels, ElementsAre('e', 'f', 'g', 'h'));
    EXPECT_THAT(dataset->name(2), HasSubstr("[2]"));
  }
  const auto color = open_dataset({.format = "idx", .path = plain, .channels = 3});
  EXPECT_FALSE(color->labeled());
  EXPECT_EQ(color->get(0).truth.label, -1);
  EXPECT_THAT(color->get(0).image.pixels, ElementsAre('a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c', 'd', 'd', 'd'));
}

TEST_F(IdxTest, FashionMnistOfThePackage) {
  const fs::path directory = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(directory)) GTEST_SKIP() << "package dataset-fashion-mnist is not installed";
  const auto test = open_dataset({.format = "idx", .path = directory, .split = "test"});
  ASSERT_EQ(test->size(), 10000);
  EXPECT_EQ(test->class_names().size(), 10u);
  std::vector<int> counts(10);
  for (int64_t i = 0; i < test->size(); ++i) ++counts[static_cast<size_t>(test->truth(i).label)];
  EXPECT_THAT(counts, testing::Each(1000));
  EXPECT_EQ(test->truth(0).label, 9);  // an ankle boot
  EXPECT_EQ(test->get(0).image.height, 28);
  EXPECT_THAT(message_of([&] { open_dataset({.format = "idx", .path = directory}); }), HasSubstr("which split"));
  EXPECT_THAT(message_of([&] { open_dataset({.format = "idx", .path = directory, .split = "val"}); }),
              AllOf(HasSubstr("'val'"), HasSubstr("train or test")));
}

TEST_F(IdxTest, DamagedFilesAreRefusedWithAReason) {
  const std::string good = idx_bytes({2, 2, 2}, "abcdefgh");
  EXPECT_EQ(idx_error(good), "");
  EXPECT_THAT(idx_error(""), HasSubstr("not an IDX file"));
  EXPECT_THAT(idx_error("garbage garbage"), HasSubstr("not an IDX file"));
  EXPECT_THAT(idx_error(good.substr(0, 9)), HasSubstr("ends within its header"));
  EXPECT_THAT(idx_error(good.substr(0, good.size() - 1)), AllOf(HasSubstr("2 x 2 x 2 = 8"), HasSubstr("but 7 follow")));
  EXPECT_THAT(idx_error(good + "x"), HasSubstr("but more follow"));
  EXPECT_THAT(idx_error(idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, "abc")), HasSubstr("more than the limit"));
  EXPECT_THAT(idx_error(std::string("\0\0\x0d\x01\0\0\0\0", 8)), HasSubstr("type 0x0d"));
  EXPECT_THAT(idx_error(std::string("\0\0\x08\x09", 4)), HasSubstr("9 dimensions"));

  const std::string packed = gzip_bytes(good);
  EXPECT_EQ(idx_error(packed), "");
  EXPECT_EQ(idx_error(gzip_bytes(good.substr(0, 5)) + gzip_bytes(good.substr(5))), "");  // several members
  for (size_t cut = 2; cut < packed.size(); ++cut)
    EXPECT_THAT(idx_error(packed.substr(0, cut)), HasSubstr("ends early"));
  std::string flipped = packed;
  flipped[packed.size() - 6] ^= 1;  // in the checksum
  EXPECT_THAT(idx_error(flipped), HasSubstr("damaged"));
  EXPECT_THAT(idx_error(packed + "tail"), HasSubstr("damaged"));
}

TEST_F(IdxTest, DoesNotUnpackBeyondTheLimit) {
  const std::string bomb = gzip_bytes(idx_bytes({1 << 20}, std::string(1 << 20, '\0')));
  EXPECT_THAT(message_of([&] { parse_idx(bomb, "bomb", 100000); }), HasSubstr("more than the limit of 100000"));
  // Unpacking stops behind what the header promises: what comes later is not even looked at.
  const std::string promised = gzip_bytes(idx_bytes({4}, "abcd")), more = gzip_bytes(std::string(1 << 20, '\0'));
  EXPECT_THAT(idx_error(promised + more.substr(0, more.size() / 2)), HasSubstr("but more follow"));
  EXPECT_THAT(idx_error(promised + more), HasSubstr("but more follow"));
  // A promise alone takes no memory.
  EXPECT_THAT(idx_error(idx_bytes({0xffffffff}, "abcd")), HasSubstr("but 4 follow"));
}

TEST_F(IdxTest, ImagesAndLabelsMustFit) {
  const fs::path images = put("images", idx_bytes({2, 1, 2}, "abcd"));
  const fs::path three = put("three", idx_bytes({3}, "\x01\x01\x01"));
  const fs::path two = put("two", idx_bytes({2}, "\x01\x05"));
  const auto error = [&](const fs::path& i, const fs::path& l) {
    return message_of([&] { open_dataset({.format = "idx", .path = i, .labels = l}); });
  };
  EXPECT_THAT(error(images, three), AllOf(HasSubstr("three"), HasSubstr("3 labels"), HasSubstr("2 images")));
  EXPECT_THAT(error(two, two), HasSubstr("is it the labels file?"));
  EXPECT_THAT(error(images, images), HasSubstr("is it the images file?"));
  EXPECT_EQ(error(images, two), "");
  EXPECT_THAT(error(put("none", idx_bytes({0, 28, 28}, "")), ""), HasSubstr("holds no images"));
  EXPECT_THAT(error(directory_ / "missing", ""), HasSubstr("no such file"));
}

TEST_F(IdxTest, ContentHashFollowsImagesAndLabels) {
  const fs::path a = put("a", idx_bytes({2, 1, 2}, "abcd")), b = put("b", idx_bytes({2, 1, 2}, "abce"));
  const fs::path l = put("l", idx_bytes({2}, "\x01\x01")), m = put("m", idx_bytes({2}, "\x01\x02"));
  const auto hash = [](const fs::path& images, const fs::path& labels) {
    return open_dataset({.format = "idx", .path = images, .labels = labels})->content_hash();
  };
  EXPECT_EQ(hash(a, l), hash(a, l));
  EXPECT_NE(hash(a, l), hash(b, l));
  EXPECT_NE(hash(a, l), hash(a, m));
}

std::string cifar_record(const std::string& labels, char red, char green, char blue) {
  return labels + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

TEST_F(CifarTest, ReadsBatchesInOrder) {
  for (int i = 1; i <= 5; ++i)
    put(str("data_batch_", i, ".bin"),
        cifar_record(std::string(1, static_cast<char>(i)), 10, 20, static_cast<char>(i)));
  put("test_batch.bin", cifar_record("\x09", 1, 2, 3) + cifar_record("\x08", 4, 5, 6));
  const auto train = open_dataset({.format = "cifar10", .path = directory_, .split = "train"});
  ASSERT_EQ(train->size(), 5);
  EXPECT_EQ(train->get(3).truth.label, 4);
  EXPECT_EQ(train->get(3).image.pixels[0], 10);
  EXPECT_EQ(train->get(3).image.pixels[2], 4);
  EXPECT_THAT(train->name(3), HasSubstr("data_batch_4.bin[0]"));
  EXPECT_EQ(train->class_names()[9], "9");
  put("batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const auto test = open_dataset({.format = "cifar10", .path = directory_, .split = "test"});
  EXPECT_EQ(test->class_names()[9], "truck");
  EXPECT_EQ(test->truth(1).label, 8);
}

TEST_F(CifarTest, Cifar100TakesTheFineLabel) {
  const fs::path file = put("train.bin", cifar_record("\x03\x3f", 1, 2, 3));
  EXPECT_EQ(open_dataset({.format = "cifar100", .path = file})->get(0).truth.label, 63);
}

TEST_F(CifarTest, RefusesDamagedFiles) {
  const auto error = [&](const std::string& bytes) {
    const fs::path file = put("file.bin", bytes);
    return message_of([&] { open_dataset({.format = "cifar10", .path = file}); });
  };
  EXPECT_THAT(error(""), HasSubstr("0 bytes"));
  EXPECT_THAT(error(std::string(3000, '\0')), HasSubstr("multiple of 3073"));
  EXPECT_THAT(error(cifar_record("\x0a", 0, 0, 0)), HasSubstr("record 0 has label 10"));
  EXPECT_THAT(message_of([&] { open_dataset({.format = "cifar10", .path = directory_, .split = "test"}); }),
              HasSubstr("test_batch.bin"));
}

TEST_F(ImageFolderTest, ClassesAreSortedDirectories) {
  put("dog/2.png", png_bytes(test_image(4, 4, 3, 2)));
  put("dog/10.JPG", jpeg_bytes(test_image(4, 4, 3, 1)));
  put("cat/deep/a.ppm", pnm_bytes(test_image(5, 4, 3, 3)));
  put("cat/readme.txt", "no image");
  put(".hidden/x.png", "");
  put("notes.txt", "none");
  const auto dataset = open_dataset({.format = "image_folder", .path = directory_});
  EXPECT_THAT(dataset->class_names(), ElementsAre("cat", "dog"));
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_THAT(dataset->name(0), HasSubstr("a.ppm"));
  EXPECT_THAT(dataset->name(1), HasSubstr("10.JPG"));
  EXPECT_EQ(dataset->truth(2).label, 1);
  EXPECT_EQ(dataset->get(2).image.pixels, test_image(4, 4, 3, 2).pixels);
  const auto gray = open_dataset({.format = "image_folder", .path = directory_, .channels = 1});
  EXPECT_EQ(gray->get(2).image.channels, 1);

  const uint64_t before = dataset->content_hash();
  put("dog/3.png", "");
  EXPECT_NE(open_dataset({.format = "image_folder", .path = directory_})->content_hash(), before);
}

TEST_F(ImageFolderTest, AFlatFolderHasNoLabels) {
  put("b.png", png_bytes(test_image(2, 2, 3)));
  put("a.png", png_bytes(test_image(3, 2, 3)));
  const auto dataset = open_dataset({.format = "image_folder", .path = directory_});
  EXPECT_FALSE(dataset->labeled());
  EXPECT_EQ(dataset->get(0).image.height, 3);
  EXPECT_EQ(dataset->get(0).truth.label, -1);
}

TEST_F(ImageFolderTest, StructureErrorsAreClear) {
  const auto error = [&](const std::string& split = "") {
    return message_of([&] { open_dataset({.format = "image_folder", .path = directory_, .split = split}); });
  };
  EXPECT_THAT(error(), HasSubstr("neither class directories nor images"));
  EXPECT_THAT(error("val"), AllOf(HasSubstr("val"), HasSubstr("not a directory")));
  fs::create_directories(directory_ / "empty_class");
  EXPECT_THAT(error(), AllOf(HasSubstr("empty_class"), HasSubstr("without images")));
  put("a.png", "x");
  EXPECT_THAT(error(), HasSubstr("both directly in it (a.png) and class directories (empty_class)"));
}

TEST_F(ImageFolderTest, ACorruptImageIsNamed) {
  const std::string jpeg = jpeg_bytes(test_image(32, 32, 3));
  put("c/1.jpg", jpeg.substr(0, jpeg.size() / 2));
  put("c/2.png", "");
  const auto dataset = open_dataset({.format = "image_folder", .path = directory_});
  for (int64_t i = 0; i < 2; ++i) {
    try {
      dataset->get(i);
      FAIL() << "no error for " << dataset->name(i);
    } catch (const CorruptSample& corrupt) {
      EXPECT_EQ(corrupt.name(), dataset->name(i));
      EXPECT_FALSE(corrupt.reason().empty());
    }
  }
}

TEST(OpenDataset, NamesTheFormats) {
  EXPECT_THAT(message_of([] { open_dataset({.format = "yolo", .path = "."}); }),
              HasSubstr("idx, image_folder, cifar10, cifar100, imagenet_tfrecord, voc, kitti, coco, tfrecord"));
  EXPECT_THAT(message_of([] { open_dataset({.format = "idx", .path = ".", .channels = 2}); }), HasSubstr("2 channels"));
}

TEST(Subset, IsARunOfTheWhole) {
  const auto whole = [] {
    return make_idx_dataset({{4, 1, 1}, "abcd"}, "images", IdxArray{{4}, std::string("\0\1\0\1", 4)}, "labels", {});
  };
  const auto part = take_subset(whole(), 1, 2);
  ASSERT_EQ(part->size(), 2);
  EXPECT_EQ(part->get(1).image.pixels[0], 'c');
  EXPECT_EQ(part->truth(0).label, 1);
  EXPECT_EQ(take_subset(whole(), 3, 0)->size(), 1);
  EXPECT_NE(part->content_hash(), take_subset(whole(), 2, 2)->content_hash());
  EXPECT_THROW(take_subset(whole(), 2, 3), UserError);
  EXPECT_THROW(take_subset(whole(), 4, 0), UserError);
}

}  // namespace
}  // namespace octet::data
