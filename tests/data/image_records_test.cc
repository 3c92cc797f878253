#include "data/image_records.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <tuple>

#include "base/files.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageRecordsTest : public DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    for (int i = 0; i < 7; ++i) {
      const Image image = test_image(5 + i, 8, 3, i);
      put(str("images/", i % 2 ? "n02" : "n01", "/", i,
              i < 4   ? ".jpg"
              : i < 6 ? ".png"
                      : ".bmp"),
          i < 4   ? jpeg_bytes(image)
          : i < 6 ? png_bytes(image)
                  : bmp_bytes(image));
    }
    std::filesystem::create_directories(directory_ / "records");
  }
  DatasetOptions records(int64_t label_offset = 1) {
    return {.format = "imagenet_tfrecord", .path = directory_ / "records", .label_offset = label_offset};
  }
  ImageRecordOptions conversion() {
    return {.source = {.format = "image_folder", .path = directory_ / "images"}, .num_shards = 3};
  }
  WrittenRecords write(const ImageRecordOptions& options) {
    const auto dataset = open_dataset(options.source);
    return write_image_records(*dataset, options, directory_ / "records/train");
  }
  // Of all images: class and pixels.
  static std::multiset<std::tuple<std::string, std::vector<uint8_t>>> contents(const Dataset& dataset) {
    std::multiset<std::tuple<std::string, std::vector<uint8_t>>> out;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const Sample sample = dataset.get(i);
      out.insert({dataset.class_names().at(static_cast<size_t>(sample.truth.label)), sample.image.pixels});
    }
    return out;
  }
};

TEST_F(ImageRecordsTest, WritesWhatIsReadAgain) {
  for (const int64_t offset : {1, 0}) {
    ImageRecordOptions wanted = conversion();
    wanted.label_offset = offset;
    const WrittenRecords written = write(wanted);
    EXPECT_EQ(written.images, 7);
    EXPECT_THAT(written.of_class, ElementsAre(4, 3));
    EXPECT_EQ(written.files, earlier_shards(directory_ / "records/train"));
    EXPECT_EQ(written.files.at(2).filename(), "train-00002-of-00003");
    const auto again = open_dataset(records(offset)), source = open_dataset(wanted.source);
    EXPECT_EQ(again->class_names(), source->class_names());
    EXPECT_EQ(contents(*again), contents(*source));
  }
  // In the order of the source the files are the same ones, byte by byte where they are JPEG or PNG.
  ImageRecordOptions ordered = conversion();
  ordered.shuffle = false;
  write(ordered);
  const auto again = open_dataset(records()), source = open_dataset(ordered.source);
  int copied = 0;
  for (int64_t i = 0; i < source->size(); ++i) {
    EXPECT_EQ(again->get(i).image.pixels, source->get(i).image.pixels);
    copied += again->encoded(i) == source->encoded(i);
  }
  EXPECT_EQ(copied, 6);
}

TEST_F(ImageRecordsTest, GivesTheSameBytesEachTime) {
  const auto bytes = [&](int64_t seed) {
    ImageRecordOptions wanted = conversion();
    wanted.seed = seed;
    std::string out;
    for (const auto& file : write(wanted).files) out += read_file(file);
    return out;
  };
  EXPECT_EQ(bytes(42), bytes(42));
  EXPECT_NE(bytes(42), bytes(1));
}

TEST_F(ImageRecordsTest, DecidesTheNumberOfShards) {
  ImageRecordOptions one = conversion();
  one.num_shards = 0;
  EXPECT_EQ(write(one).files.at(0).filename(), "train-00000-of-00001");
  one.num_shards = 100;  // more than images
  EXPECT_EQ(write(one).files.size(), 7u);
}

TEST_F(ImageRecordsTest, SaysWhatIsWrong) {
  put("images/n02/x.jpg", "no image");
  const WrittenRecords written = write(conversion());
  EXPECT_EQ(written.images, 7);
  EXPECT_THAT(written.findings.sentences(), ElementsAre(HasSubstr("1 image file cannot be read and is left out: ")));
  put("flat/1.png", png_bytes(test_image(4, 4, 3)));
  ImageRecordOptions flat = conversion();
  flat.source.path = directory_ / "flat";
  EXPECT_THAT(message_of([&] { write(flat); }), HasSubstr("its images have no class"));
  ImageRecordOptions texts = conversion();
  texts.text_of_synset = put("texts.txt", "n01 tench, Tinca tinca\n");
  EXPECT_THAT(message_of([&] { write(texts); }), HasSubstr("has no line for the class 'n02'"));
  put("texts.txt", "n01\n");
  EXPECT_THAT(message_of([&] { write(texts); }), HasSubstr("texts.txt:1: is no line of a synset and its text"));
}

// An independent reader: CRC bit by bit, protobuf by hand, in Python without any package.
TEST_F(ImageRecordsTest, AreReadByAnotherReader) {
  ImageRecordOptions wanted = conversion();
  wanted.text_of_synset = put("texts.txt", "n01 tench, Tinca tinca\r\nn02\tgoldfish\n");
  wanted.shuffle = false;
  wanted.num_shards = 1;
  const WrittenRecords written = write(wanted);
  const std::string script = std::string(OCTET_SOURCE_DIR) + "/tests/data/read_tfrecords.py";
  const std::string out = (directory_ / "out.txt").string();
  const std::string command = "python3 '" + script + "' '" + written.files.at(0).string() + "' > '" + out + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::istringstream lines(read_file(out));
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) found.push_back(line);
  ASSERT_EQ(found.size(), 7u);
  EXPECT_THAT(found[0], HasSubstr("{\"image/class/label\": [1], \"image/class/synset\": [\"n01\"], "
                                  "\"image/class/text\": [\"tench, Tinca tinca\"], \"image/encoded\": [\"ffd8ff"));
  EXPECT_THAT(found[0], HasSubstr("\"image/filename\": [\"0.jpg\"], \"image/format\": [\"JPEG\"], "
                                  "\"image/height\": [5], \"image/width\": [8]}"));
  EXPECT_THAT(found[3], AllOf(HasSubstr("\"image/format\": [\"PNG\"]"), HasSubstr("\"image/filename\": [\"6.bmp\"]")));
  EXPECT_THAT(found[6], AllOf(HasSubstr("\"image/class/label\": [2]"), HasSubstr("[\"goldfish\"]")));
}

}  // namespace
}  // namespace octet::data
