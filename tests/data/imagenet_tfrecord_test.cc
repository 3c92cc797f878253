#include "data/imagenet_tfrecord.h"

#include <gmock/gmock.h>

#include <set>

#include "base/records.h"
#include "data/loader.h"
#include "data/record_shards.h"
#include "example_bytes.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string features(int label, const std::string& image) {
  return text_feature("image/encoded", image) + integer_feature("image/class/label", label);
}
std::string record(int label, int variant = 0, const std::string& synset = "", const std::string& text = "") {
  std::string all = features(label, png_bytes(test_image(6, 8, 3, variant)));
  if (!synset.empty()) all = text_feature("image/class/synset", synset) + all;  // also before the image
  if (!text.empty()) all += text_feature("image/class/text", text);
  return framed_record(example(all + text_feature("image/colorspace", "RGB")));
}

class ImagenetTfrecordTest : public DirectoryTest {
 protected:
  DatasetOptions options(const std::string& path = "records", int64_t label_offset = 1) {
    return {.format = "imagenet_tfrecord", .path = directory_ / path, .label_offset = label_offset};
  }
  std::string error(const DatasetOptions& options) {
    return message_of([&] { open_dataset(options); });
  }
  // Three classes in two shards, and a set of two.
  void put_sets() {
    put("records/train-00000-of-00002", record(2, 1, "n2", "two, deux") + record(1, 2, "n1"));
    put("records/train-00001-of-00002", record(3, 3, "n3") + record(1, 4, "n1"));
    put("records/validation-00000-of-00001", record(1, 5, "n1") + record(3, 6, "n3"));
  }
  static std::vector<int> labels(const Dataset& dataset) {
    std::vector<int> out;
    for (int64_t i = 0; i < dataset.size(); ++i) out.push_back(dataset.truth(i).label);
    return out;
  }
};

TEST_F(ImagenetTfrecordTest, ReadsImagesAndClasses) {
  put_sets();
  DatasetOptions train = options();
  train.split = "train";
  const auto dataset = open_dataset(train);
  EXPECT_THAT(labels(*dataset), ElementsAre(1, 0, 2, 0));
  EXPECT_THAT(dataset->class_names(), ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(dataset->findings().sentences(), ElementsAre());
  for (int i = 0; i < 4; ++i) {
    const Sample sample = dataset->get(i);
    EXPECT_EQ(sample.image.pixels, test_image(6, 8, 3, i + 1).pixels);
    EXPECT_EQ(sample.truth.label, dataset->truth(i).label);
    EXPECT_EQ(dataset->encoded(i), png_bytes(test_image(6, 8, 3, i + 1)));
  }
  EXPECT_EQ(dataset->name(3), (directory_ / "records/train-00001-of-00002").string() + ", record 2");
  train.channels = 1;
  EXPECT_EQ(open_dataset(train)->get(0).image.channels, 1);
  train.offset = 1, train.limit = 2;
  EXPECT_THAT(labels(*open_dataset(train)), ElementsAre(0, 2));
  EXPECT_EQ(open_dataset(train)->encoded(0), png_bytes(test_image(6, 8, 3, 2)));
  train.offset = train.limit = 0;
  train.folds = 2;
  train.fold = FoldChoice{.fold = 0};
  EXPECT_EQ(open_dataset(train)->size(), 2);
}

TEST_F(ImagenetTfrecordTest, TakesFilesFoldersAndPatterns) {
  put_sets();
  put("records/README.md", "");
  EXPECT_EQ(open_dataset(options("records/train-*"))->size(), 4);
  EXPECT_EQ(open_dataset(options("records/*"))->size(), 6);
  EXPECT_EQ(open_dataset(options("records/train-00001-of-00002"))->size(), 2);
  EXPECT_THAT(error(options()), HasSubstr("holds the sets train, validation; name one of them as `split`"));
  DatasetOptions split = options();
  split.split = "test";
  EXPECT_THAT(error(split), HasSubstr("has no files of the set 'test', as test-00000-of-01024"));
  EXPECT_THAT(error(options("records/test-*")), HasSubstr("there is no such file"));
  EXPECT_THAT(error(options("nothing")), HasSubstr("nothing: no such file or directory"));
  put("whole/val.tfrecord", record(1));
  EXPECT_EQ(open_dataset(options("whole"))->size(), 1);
}

TEST_F(ImagenetTfrecordTest, MissingShardsAreNamed) {
  for (int i = 0; i < 12; ++i)
    if (i != 3 && i != 10) put(shard_file_name({.set = "records/train", .shard = i, .shards = 12}), record(1));
  const std::string said = "2 of the 12 shards of 'train' are missing: train-00003-of-00012, train-00010-of-00012";
  EXPECT_THAT(error(options()), HasSubstr(said));
  EXPECT_THAT(error(options("records/train*")), HasSubstr(said));
  // What the pattern does not mean is not missed.
  EXPECT_EQ(open_dataset(options("records/train-*1-of-00012"))->size(), 2);
}

TEST(ShardNames, AreThoseOfTensorFlow) {
  const auto name = shard_name("imagenet-train.tfrecord-00003-of-01024");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->set, "imagenet-train.tfrecord");
  EXPECT_EQ(name->shard, 3);
  EXPECT_EQ(name->shards, 1024);
  EXPECT_EQ(shard_name("train-00000-of-00001.tfrecord")->ending, ".tfrecord");
  EXPECT_EQ(shard_file_name({.set = "train", .shard = 7, .shards = 128}), "train-00007-of-00128");
  for (const char* other : {"train", "train-00002-of-00002", "train-1-of-2", "train-000001-of-00002"})
    EXPECT_FALSE(shard_name(other)) << other;
}

TEST_F(ImagenetTfrecordTest, LabelsMustFitTheirOffset) {
  put("records/val-00000-of-00001", record(0) + record(1) + record(2));
  EXPECT_THAT(error(options()),
              HasSubstr("1 of 3 images have a label below label_offset, which is 1 (image/class/label "
                        "is 0 to 2 in 3 images); for records that count from 0, set label_offset: 0"));
  EXPECT_THAT(labels(*open_dataset(options("records", 0))), ElementsAre(0, 1, 2));
  put("one/val-00000-of-00001", record(1) + record(2));
  const auto background = open_dataset(options("one", 0));
  EXPECT_THAT(labels(*background), ElementsAre(1, 2));
  EXPECT_THAT(background->class_names(), ElementsAre("0", "1", "2"));
  EXPECT_THAT(
      background->findings().sentences(),
      ElementsAre(HasSubstr("image/class/label is 1 to 2 in 2 images, so that the first class has no image with "
                            "label_offset: 0; for records that count from 1, set label_offset: 1")));
  put("none/test-00000-of-00001", record(-1));
  EXPECT_THAT(error(options("none")), HasSubstr("images without a class cannot be used"));
}

TEST_F(ImagenetTfrecordTest, NamesOfClassesAreSynsetsElseTextsElseNumbers) {
  put("a/a.tfrecord", record(1, 0, "", "tench, Tinca tinca") + record(2, 0, "", "crane"));
  EXPECT_THAT(open_dataset(options("a"))->class_names(), ElementsAre("tench, Tinca tinca", "crane"));
  // ImageNet has two classes called crane.
  put("b/b.tfrecord", record(1, 0, "", "crane") + record(2, 0, "", "crane"));
  const auto cranes = open_dataset(options("b"));
  EXPECT_THAT(cranes->class_names(), ElementsAre("0", "1"));
  EXPECT_THAT(cranes->findings().sentences(), ElementsAre(HasSubstr("two classes are called 'crane'")));
  // One shard of many has images of some classes only.
  put("c/c.tfrecord", record(1, 0, "n1") + record(4, 0, "n4"));
  const auto part = open_dataset(options("c"));
  EXPECT_THAT(part->class_names(), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(part->findings().sentences(), ElementsAre(HasSubstr("2 of its 4 classes have no image here")));
  put("d/d.tfrecord", record(1, 0, "n1") + record(1, 0, "n2"));
  EXPECT_THAT(error(options("d")),
              AllOf(HasSubstr("d.tfrecord, record 2: its class 1 has the synset 'n2', and that of"),
                    HasSubstr("d.tfrecord, record 1 'n1'")));
  put("e/e.tfrecord", record(1, 0, "n1") + record(2, 0, "n1"));
  EXPECT_THAT(error(options("e")), HasSubstr("has the class 2 with the synset 'n1', which is that of another class"));
}

TEST_F(ImagenetTfrecordTest, DamageIsFoundAndPlaced) {
  const std::string first = record(1), second = record(2);
  std::string bytes = first + second;
  bytes[bytes.size() - 90] ^= 4;  // in the image, which is read later
  put("image/a.tfrecord", bytes);
  const auto dataset = open_dataset(options("image"));
  EXPECT_EQ(dataset->get(0).image.width, 8);
  try {
    dataset->get(1);
    ADD_FAILURE() << "taken";
  } catch (const CorruptSample& corrupt) {
    EXPECT_EQ(corrupt.name(), (directory_ / "image/a.tfrecord").string() + ", record 2");
    EXPECT_THAT(corrupt.reason(), HasSubstr(str("from byte ", first.size() + 12, " on does not hold")));
  }
  bytes = first + second;
  bytes[first.size() + 9] ^= 1;
  put("header/a.tfrecord", bytes);
  EXPECT_THAT(error(options("header")), HasSubstr(str("a.tfrecord: record 2 (byte ", first.size(), ")")));
  bytes = first + second;
  bytes[first.size() + 12] ^= 8;  // no longer the field of an Example
  put("fields/a.tfrecord", bytes);
  EXPECT_THAT(error(options("fields")), AllOf(HasSubstr(str("record 2 (byte ", first.size(), "): the checksum"))));
  put("cut/a.tfrecord", first + second.substr(0, second.size() - 3));
  EXPECT_THAT(error(options("cut")), HasSubstr("is it cut off?"));
  // Changed behind the dataset's back.
  const auto shorter = open_dataset(options("image"));
  put("image/a.tfrecord", first.substr(0, 40));
  EXPECT_THROW(shorter->get(0), CorruptSample);
  std::filesystem::remove(directory_ / "image/a.tfrecord");
  EXPECT_THROW(shorter->get(0), CorruptSample);
}

TEST_F(ImagenetTfrecordTest, RecordsOfAnotherKindAreLeftOut) {
  put("records/a.tfrecord", record(1) + framed_record(example(text_feature("image/encoded", "x"))) +
                                framed_record(example(integer_feature("image/class/label", 1))));
  const auto dataset = open_dataset(options());
  EXPECT_EQ(dataset->size(), 1);
  EXPECT_THAT(dataset->findings().sentences(),
              ElementsAre(AllOf(HasSubstr("2 annotations cannot be read"), HasSubstr("has no 'image/class/label'"),
                                HasSubstr("record 3: has no 'image/encoded'"))));
  put("other/a.tfrecord", framed_record("\x0a\x7f"));
  EXPECT_THAT(error(options("other")),
              AllOf(HasSubstr("holds no image that can be used"), HasSubstr("is no tf.train.Example")));
  put("bad/a.tfrecord", framed_record(example(features(1, "no image"))));
  const auto bad = open_dataset(options("bad"));
  EXPECT_THROW(bad->get(0), CorruptSample);
}

TEST_F(ImagenetTfrecordTest, TheLoaderSharesItOut) {
  put_sets();
  DatasetOptions train = options();
  train.split = "train";
  const auto dataset = open_dataset(train);
  std::multiset<int64_t> seen;
  for (int64_t part = 0; part < 2; ++part) {
    Loader loader(*dataset, {.batch_size = 1, .shuffle = true, .threads = 2, .share = {.part = part, .parts = 2}});
    loader.start_epoch(0);
    while (const auto batch = loader.next()) seen.insert(batch->indices.at(0));
  }
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace octet::data
