#include "data/joined.h"

#include <gmock/gmock.h>

#include "data/memory_dataset.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An image of one gray pixel for each label, `first` and what follows.
Source source(const std::string& where, std::vector<std::string> names, std::vector<int> labels, int first = 0) {
  std::string pixels;
  const auto count = static_cast<int64_t>(labels.size());
  for (int64_t i = 0; i < count; ++i) pixels += static_cast<char>(first + i);
  MemoryDataset::Contents contents{.parts = {{where, pixels, 0, 1, count}},
                                   .height = 1,
                                   .width = 1,
                                   .channels = 1,
                                   .labels = names.empty() ? std::vector<int>() : std::move(labels),
                                   .class_names = std::move(names)};
  return {std::make_unique<MemoryDataset>(std::move(contents), 0), where};
}

template <typename... Sources>
std::unique_ptr<Dataset> joined(Sources... sources) {
  std::vector<Source> all;
  (all.push_back(std::move(sources)), ...);
  return join(std::move(all));
}

template <typename... Sources>
std::string complaint(Sources... sources) {
  return message_of([&] { joined(std::move(sources)...); });
}

TEST(Joined, UnitesClassesByName) {
  const auto data = joined(source("a", {"cat", "dog"}, {1, 0, 1}), source("b", {"ant", "cat"}, {0, 1}, 10),
                           source("c", {"cat", "dog"}, {0}, 20));
  EXPECT_THAT(data->class_names(), ElementsAre("cat", "dog", "ant"));
  ASSERT_EQ(data->size(), 6);
  std::vector<int> labels, pixels, sampled;
  std::vector<std::string> names;
  for (int64_t i = 0; i < data->size(); ++i) {
    labels.push_back(data->truth(i).label);
    sampled.push_back(data->get(i).truth.label);
    pixels.push_back(data->get(i).image.pixels[0]);
    names.push_back(data->name(i));
  }
  EXPECT_THAT(labels, ElementsAre(1, 0, 1, 2, 0, 0));
  EXPECT_EQ(sampled, labels);
  EXPECT_THAT(pixels, ElementsAre(0, 1, 2, 10, 11, 20));
  EXPECT_THAT(names[2], HasSubstr("a"));
  EXPECT_THAT(names[3], HasSubstr("b"));
}

TEST(Joined, OneSourceIsItself) {
  Source one = source("a", {"cat"}, {0});
  const Dataset* before = one.dataset.get();
  EXPECT_EQ(joined(std::move(one)).get(), before);
}

TEST(Joined, HashCoversAllSourcesAndTheirOrder) {
  const auto hash = [](int first, int second) {
    return joined(source("a", {"x"}, {0, 0}, first), source("b", {"x"}, {0}, second))->content_hash();
  };
  EXPECT_EQ(hash(1, 2), hash(1, 2));
  EXPECT_NE(hash(1, 2), hash(1, 3));
  EXPECT_NE(hash(1, 2), hash(3, 2));
  const auto renamed = joined(source("a", {"x"}, {0}), source("b", {"x", "y"}, {1}))->content_hash();
  EXPECT_NE(renamed, joined(source("a", {"x"}, {0}), source("b", {"y", "x"}, {1}))->content_hash());
}

TEST(Joined, NumbersJoinNumbersOnly) {
  EXPECT_THAT(joined(source("a", {"0", "1"}, {0}), source("b", {"0", "1", "2"}, {2}))->class_names(),
              ElementsAre("0", "1", "2"));
  // A folder of the digits 0 and 7 has numbers for names.
  const auto digits = joined(source("a", {"0", "1", "2"}, {2}), source("b", {"0", "7"}, {1}));
  EXPECT_THAT(digits->class_names(), ElementsAre("0", "1", "2", "7"));
  EXPECT_EQ(digits->truth(1).label, 3);
  const std::string wanted =
      "mnist: its classes are the numbers 0 to 1, and clothes has the class 'bag'; which number stands for which name "
      "is not known, so they cannot be joined";
  EXPECT_EQ(complaint(source("mnist", {"0", "1"}, {0}), source("clothes", {"bag", "shirt"}, {0})), wanted);
  EXPECT_EQ(complaint(source("clothes", {"bag", "shirt"}, {0}), source("mnist", {"0", "1"}, {0})), wanted);
}

TEST(Joined, LabelsAreOfOneKind) {
  EXPECT_THAT(joined(source("a", {}, {0}), source("b", {}, {0}))->class_names(), IsEmpty());
  EXPECT_EQ(complaint(source("a", {"cat"}, {0}), source("b", {}, {0})),
            "b: its images have no labels, and those of a have; they cannot be joined");
  EXPECT_EQ(complaint(source("a", {}, {0}), source("b", {"cat"}, {0})),
            "a: its images have no labels, and those of b have; they cannot be joined");
}

class JoinedFolders : public DirectoryTest {};

TEST_F(JoinedFolders, ObjectsOfVocAndKittiShareClasses) {
  const std::string picture = pnm_bytes(test_image(20, 30, 3));
  put("voc/JPEGImages/one.ppm", picture);
  put("voc/Annotations/one.xml",
      "<annotation><size><width>30</width><height>20</height></size><object><name>car</name><bndbox><xmin>2</xmin>"
      "<ymin>3</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object></annotation>");
  put("kitti/images/two.ppm", picture);
  put("kitti/labels/two.txt", "bus 0 0 0 1 2 11 12 0 0 0 0 0 0 0\ncar 0 0 0 3 4 13 14 0 0 0 0 0 0 0\n");
  put("folder/car/three.ppm", picture);
  const auto opened = [&](const std::string& format) {
    const std::filesystem::path path = directory_ / (format == "image_folder" ? "folder" : format);
    return Source{open_dataset({.format = format, .path = path}), path.string()};
  };
  const auto data = joined(opened("voc"), opened("kitti"));
  EXPECT_THAT(data->class_names(), ElementsAre("car", "bus"));
  ASSERT_EQ(data->truth(1).objects.size(), 2u);
  EXPECT_EQ(data->truth(0).objects[0].label, 0);
  EXPECT_EQ(data->truth(1).objects[0].label, 1);
  EXPECT_EQ(data->truth(1).objects[1].label, 0);
  EXPECT_EQ(data->truth(1).objects[1].box, (vision::Box{3, 4, 13, 14}));
  EXPECT_EQ(data->name(1), (directory_ / "kitti/images/two.ppm").string());
  EXPECT_THAT(complaint(opened("image_folder"), opened("voc")),
              HasSubstr("voc: tells the objects in its images, and " + (directory_ / "folder").string() +
                        " one class for each image; they cannot be joined"));
}

}  // namespace
}  // namespace octet::data
