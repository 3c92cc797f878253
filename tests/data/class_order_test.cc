#include "data/class_order.h"

#include <gmock/gmock.h>

#include "data/memory_dataset.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// One image a label.
std::unique_ptr<Dataset> dataset_of(const std::vector<std::string>& names, const std::vector<int>& labels) {
  MemoryDataset::Contents contents{.height = 1, .width = 1, .channels = 1};
  contents.parts.push_back({"memory", std::string(labels.size(), 'x'), 0, 1, static_cast<int64_t>(labels.size())});
  contents.labels = labels;
  contents.class_names = names;
  return std::make_unique<MemoryDataset>(std::move(contents), 1);
}

std::vector<int> labels_of(const Dataset& dataset) {
  std::vector<int> out;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    out.push_back(dataset.truth(i).label);
    EXPECT_EQ(dataset.get(i).truth.label, out.back());
  }
  return out;
}

TEST(ClassOrder, LabelsFollowTheNames) {
  const auto lacking = label_by_names(dataset_of({"a", "c"}, {0, 1, 1}), {"a", "b", "c"}, "val", "of the model");
  EXPECT_THAT(labels_of(*lacking), ElementsAre(0, 2, 2));
  EXPECT_THAT(lacking->class_names(), ElementsAre("a", "b", "c"));
  // The order of a model need not be that of the alphabet.
  const auto turned = label_by_names(dataset_of({"a", "b"}, {0, 1}), {"b", "a"}, "val", "of the model");
  EXPECT_THAT(labels_of(*turned), ElementsAre(1, 0));
  EXPECT_NE(turned->content_hash(), dataset_of({"a", "b"}, {0, 1})->content_hash());
}

TEST(ClassOrder, NumbersKeepTheirMeaning) {
  const auto named = label_by_names(dataset_of({"0", "1"}, {0, 1}), {"cat", "dog", "fox"}, "val", "of the model");
  EXPECT_THAT(labels_of(*named), ElementsAre(0, 1));
  EXPECT_EQ(named->class_names().at(2), "fox");
  // Folders "0", "1", "10", "2" in the order of their names are the classes 0, 1, 10 and 2 of an IDX file.
  const auto folders =
      label_by_names(dataset_of({"0", "1", "2"}, {0, 1, 2}), {"0", "1", "10", "2"}, "val", "of the model");
  EXPECT_THAT(labels_of(*folders), ElementsAre(0, 1, 3));
  EXPECT_THAT(message_of([] {
                label_by_names(dataset_of({"0", "1", "2"}, {2}), {"cat", "dog"}, "val", "of the model");
              }),
              AllOf(HasSubstr("labels up to 2"), HasSubstr("2: 'cat', 'dog'")));
}

TEST(ClassOrder, RenamedClassesMayBecomeOne) {
  const auto renamed = rename_classes(dataset_of({"0", "1", "2"}, {0, 1, 2, 2}), {"shoe", "bag", "shoe"});
  EXPECT_THAT(labels_of(*renamed), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(renamed->class_names(), ElementsAre("shoe", "bag"));
  EXPECT_THAT(message_of([] {
                rename_classes(dataset_of({"0", "1"}, {0}), {"shoe"});
              }),
              HasSubstr("1 names for the 2 classes"));
}

TEST(ClassOrder, UnknownNamesAreRefused) {
  EXPECT_THAT(message_of([] {
                label_by_names(dataset_of({"cat", "dogs"}, {0, 1}), {"cat", "dog"}, "val", "of the model");
              }),
              AllOf(HasSubstr("val: has a class that is not among those of the model: 'dogs'; did you mean 'dog'?"),
                    Not(HasSubstr("'cats'"))));
  EXPECT_THAT(message_of([] {
                label_by_names(dataset_of({"x", "y"}, {0, 1}), {"a", "b"}, "val", "of the model");
              }),
              AllOf(HasSubstr("classes that are not among those of the model: 'x', 'y'"), HasSubstr("'a', 'b'")));
}

TEST(ClassOrder, WithoutLabelsOrNamesNothingChanges) {
  EXPECT_THAT(labels_of(*label_by_names(dataset_of({}, {}), {"a"}, "val", "of the model")), ElementsAre());
  EXPECT_THAT(labels_of(*label_by_names(dataset_of({"x", "y"}, {1, 0}), {}, "val", "of the model")), ElementsAre(1, 0));
}

class ClassNamesTest : public DirectoryTest {};

// The names need no image to be read, nor its size.
TEST_F(ClassNamesTest, OfAFolderAreItsDirectories) {
  put("train/dog/1.png", "");
  put("train/cat/1.png", "");
  put("train/.hidden/1.png", "");
  EXPECT_THAT(read_class_names({.format = "image_folder", .path = directory_, .split = "train"}),
              ElementsAre("cat", "dog"));
  put("flat/1.png", "");
  EXPECT_THAT(read_class_names({.format = "image_folder", .path = directory_, .split = "flat"}), ElementsAre());
}

}  // namespace
}  // namespace octet::data
