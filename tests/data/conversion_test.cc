#include "data/objects/conversion.h"

#include <fstream>
#include <set>

#include "base/files.h"
#include "object_folder.h"

namespace octet::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<AnnotatedImage> images(int count) {
  std::vector<AnnotatedImage> out(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) out[static_cast<size_t>(i)].name = str("image_2/", i);
  return out;
}

// Sizes, and that every image is in one partition.
std::vector<size_t> sizes(const std::vector<std::vector<size_t>>& partitions, size_t all) {
  std::vector<size_t> out;
  std::set<size_t> seen;
  for (const auto& part : partitions) {
    out.push_back(part.size());
    seen.insert(part.begin(), part.end());
  }
  EXPECT_EQ(seen.size(), all);
  return out;
}

TEST(Partition, IsRandomAndTheSameEachTime) {
  const auto parts = partition(images(50), {.val_split = 14});
  EXPECT_THAT(sizes(parts, 50), ElementsAre(7, 43));
  EXPECT_EQ(parts, partition(images(50), {.val_split = 14}));
  EXPECT_NE(parts, partition(images(50), {.val_split = 14, .seed = 1}));
  std::vector<size_t> first(parts[0]);
  std::sort(first.begin(), first.end());
  EXPECT_NE(first, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6}));  // TAO's validation set: the first by name
  EXPECT_THAT(sizes(partition(images(10), {.num_partitions = 3}), 10), ElementsAre(3, 3, 4));
  EXPECT_THAT(sizes(partition(images(10), {.val_split = 0}), 10), ElementsAre(0, 10));
}

TEST(Partition, KeepsRunsTogether) {
  const auto parts = partition(images(10), {.partition_mode = PartitionMode::kSequence, .num_partitions = 3});
  EXPECT_THAT(sizes(parts, 10), ElementsAre(3, 3, 4));
  EXPECT_THAT(std::set<size_t>(parts[1].begin(), parts[1].end()), ElementsAre(3, 4, 5));
}

class ConversionTest : public ObjectFolderTest {
 protected:
  void SetUp() override {
    ObjectFolderTest::SetUp();
    for (int i = 0; i < 7; ++i) {
      picture(str("data/image_2/", i, ".png"), 6, 8 + i);
      put(str("data/label_2/", i, ".txt"),
          str("Car 0.25 2 -1.5 0.5 1 4 ", i % 3 + 2, " 1 2 3 -4 5 6 0.25\n") + kitti("DontCare", "0 0 1 1"));
    }
  }
  ConversionOptions options() {
    return {.source = {.format = "kitti", .path = directory_ / "data"}, .val_split = 30, .num_shards = 3};
  }
  std::vector<WrittenPartition> write(const ConversionOptions& options) {
    AnnotatedSet set = read_objects(options.source);
    drop_unusable(set, false, "data");
    std::filesystem::create_directories(directory_ / "records");
    return write_tfrecords(set, options, directory_ / "records/kitti");
  }
  std::vector<std::string> written() {
    std::vector<std::string> out;
    for (const auto& file : earlier_records(directory_ / "records/kitti")) out.push_back(file.filename().string());
    return out;
  }
};

TEST_F(ConversionTest, WritesWhatIsReadAgain) {
  const std::vector<WrittenPartition> parts = write(options());
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].images, 2);
  EXPECT_EQ(parts[0].files.size(), 2u);
  EXPECT_EQ(parts[1].images, 5);
  EXPECT_EQ(parts[1].objects.at("Car"), 5);
  EXPECT_EQ(parts[1].objects.at("DontCare"), 5);
  EXPECT_THAT(written(),
              ElementsAre("kitti-fold-000-of-002-shard-00000-of-00002", "kitti-fold-000-of-002-shard-00001-of-00002",
                          "kitti-fold-001-of-002-shard-00000-of-00003", "kitti-fold-001-of-002-shard-00001-of-00003",
                          "kitti-fold-001-of-002-shard-00002-of-00003"));
  const DatasetOptions records{.format = "tfrecord", .path = directory_ / "data", .labels = directory_ / "records"};
  AnnotatedSet again = read_objects(records), source = read_objects(options().source);
  ASSERT_EQ(again.images.size(), 7u);
  std::sort(again.images.begin(), again.images.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(again.images[i].path, source.images[i].path);
    EXPECT_EQ(again.images[i].annotation.width, 8 + static_cast<int>(i));
    EXPECT_EQ(again.images[i].annotation.objects, source.images[i].annotation.objects);  // lines are numbers, too
  }
  EXPECT_THAT(open_dataset(records)->class_names(), ElementsAre("Car"));
}

TEST_F(ConversionTest, GivesTheSameFilesEachTime) {
  const auto bytes = [&] {
    write(options());
    std::string out;
    for (const auto& file : earlier_records(directory_ / "records/kitti")) out += read_file(file);
    return out;
  };
  EXPECT_EQ(bytes(), bytes());
}

TEST_F(ConversionTest, WritesOneFileWithoutPartitionsAndShards) {
  ConversionOptions one = options();
  one.num_partitions = 1;
  one.num_shards = 0;
  write(one);
  EXPECT_THAT(written(), ElementsAre("kitti"));
}

TEST_F(ConversionTest, DealsSequencesAsTaoDoes) {
  const AnnotatedSet set = read_objects(options().source);
  ConversionOptions sequences = options();
  sequences.partition_mode = PartitionMode::kSequence;
  sequences.kitti_sequence_to_frames_file =
      put("map.json", R"({"short": ["6"], "b": ["2", "3"], "a": ["0", "image_2/1"], "long": ["4", "5", "6"]})");
  EXPECT_THAT(message_of([&] { partition(set.images, sequences); }), HasSubstr("the frame '6' is there twice"));
  put("map.json", R"({"b": ["2", "3"], "a": ["0", "image_2/1"], "long": ["4", "5", "6"]})");
  const auto parts = partition(set.images, sequences);
  // Longest first, then by name, dealt from the last partition on: long to 1, a to 0, b to 1.
  EXPECT_THAT(std::set<size_t>(parts[0].begin(), parts[0].end()), ElementsAre(0, 1));
  EXPECT_THAT(std::set<size_t>(parts[1].begin(), parts[1].end()), ElementsAre(2, 3, 4, 5, 6));
  put("map.json", R"({"a": ["9"]})");
  EXPECT_THAT(message_of([&] { partition(set.images, sequences); }),
              HasSubstr("has the frame \"9\", which is no annotated image"));
  put("map.json", "[]");
  EXPECT_THAT(message_of([&] { partition(set.images, sequences); }), HasSubstr("is no JSON of the kind"));
}

TEST_F(ConversionTest, RefusesFormatsWithoutObjects) {
  EXPECT_THAT(message_of([&] { read_objects({.format = "image_folder", .path = directory_}); }),
              HasSubstr("has no objects in images to convert; voc, kitti, coco or tfrecord have; octet convert images "
                        "writes the records of classifiers"));
}

// An independent reader: CRC bit by bit, protobuf by hand, in Python without any package.
TEST_F(ConversionTest, IsReadByAnotherReader) {
  write(options());
  const std::string script = std::string(OCTET_SOURCE_DIR) + "/tests/data/read_tfrecords.py";
  const std::string out = (directory_ / "out.txt").string();
  const std::string command =
      "python3 '" + script + "' '" + (directory_ / "records").string() + "'/kitti-* > '" + out + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::istringstream lines(read_file(out));
  std::set<std::string> found;
  for (std::string line; std::getline(lines, line);) found.insert(line);
  ASSERT_EQ(found.size(), 7u);
  EXPECT_EQ(*found.begin(),
            "{\"frame/height\": [6], \"frame/id\": [\"image_2/0\"], \"frame/width\": [8], "
            "\"target/coordinates_x1\": [0.5, 0.0], \"target/coordinates_x2\": [4.0, 1.0], "
            "\"target/coordinates_y1\": [1.0, 0.0], \"target/coordinates_y2\": [2.0, 1.0], "
            "\"target/object_class\": [\"Car\", \"DontCare\"], \"target/observation_angle\": [-1.5, 0.0], "
            "\"target/occlusion\": [2, 0], \"target/truncation\": [0.25, 0.0], \"target/world_bbox_h\": [1.0, 0.0], "
            "\"target/world_bbox_l\": [3.0, 0.0], \"target/world_bbox_rot_y\": [0.25, 0.0], "
            "\"target/world_bbox_w\": [2.0, 0.0], \"target/world_bbox_x\": [-4.0, 0.0], "
            "\"target/world_bbox_y\": [5.0, 0.0], \"target/world_bbox_z\": [6.0, 0.0]}");
}

}  // namespace
}  // namespace octet::data
