#include "data/class_mapping.h"

#include "base/error.h"
#include "data/folds.h"
#include "data/sampling.h"
#include "object_folder.h"

namespace octet::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ClassMappingTest : public ObjectFolderTest {
 protected:
  void SetUp() override {
    ObjectFolderTest::SetUp();
    picture("images/0.png");
    picture("images/1.png");
    put("labels/0.txt", kitti("Car", "0 0 4 3") + kitti("Van", "1 0 4 3") + kitti("Person", "2 0 4 3"));
    put("labels/1.txt", kitti("Car", "3 0 4 3") + kitti("Tram", "4 0 6 3"));
  }
  std::unique_ptr<Dataset> mapped(const ClassMapping& mapping) {
    return map_classes(open_dataset({.format = "kitti", .path = directory_}), mapping, "here");
  }
};

TEST_F(ClassMappingTest, OrdersAndJoinsClasses) {
  const auto data = mapped({.target_classes = {"person", "vehicle"},
                            .targets = {{"Van", "vehicle"}, {"Car", "vehicle"}, {"Person", "person"}}});
  EXPECT_THAT(data->class_names(), ElementsAre("person", "vehicle"));
  EXPECT_THAT(classes(*data, 0), ElementsAre("vehicle", "vehicle", "person"));
  EXPECT_THAT(classes(*data, 1), ElementsAre("vehicle"));
  EXPECT_THAT(data->findings().sentences(),
              ElementsAre("the class 'Tram' (1 objects) maps to no class that is learned and is left out"));
  EXPECT_THAT(mapped({.targets = {{"Person", "p"}, {"Car", "c"}, {"Van", "c"}}})->class_names(), ElementsAre("p", "c"));
  const auto cars = mapped({.target_classes = {"Car"}});
  EXPECT_THAT(classes(*cars, 0), ElementsAre("Car"));
  EXPECT_EQ(cars->size(), 2);
  EXPECT_THAT(mapped({})->class_names(), ElementsAre("Car", "Person", "Tram", "Van"));
}

TEST_F(ClassMappingTest, KeepsWhatFilesCallThings) {
  put("labels/1.txt", kitti("Car", "3 0 4 3") + kitti("DontCare", "4 0 6 3") + kitti("Tram", "0 0 3 3"));
  const auto names = [](const std::vector<vision::Object>& objects) {
    std::vector<std::string> out;
    for (const vision::Object& object : objects) out.push_back(str(object.label, ' ', *object.source_class));
    return out;
  };
  const auto data = mapped({.targets = {{"Car", "vehicle"}, {"Van", "vehicle"}}});
  EXPECT_THAT(names(data->truth(0).objects), ElementsAre("0 Car", "0 Van"));
  EXPECT_THAT(names(data->truth(0).others), ElementsAre("-1 Person"));
  EXPECT_THAT(names(data->truth(1).objects), ElementsAre("0 Car"));
  EXPECT_THAT(names(data->truth(1).others), ElementsAre("-1 DontCare", "-1 Tram"));
  EXPECT_EQ(data->truth(1).others[0].box, (vision::Box{4, 0, 6, 3}));
  EXPECT_THAT(names(data->get(1).truth.others), ElementsAre("-1 DontCare", "-1 Tram"));
}

TEST_F(ClassMappingTest, CaseIsPointedOut) {
  // TAO lowers the names of KITTI's classes without a word; a mapping written for it leaves nothing of KITTI's files.
  const std::string error = message_of([&] { mapped({.targets = {{"car", "car"}, {"van", "car"}}}); });
  EXPECT_THAT(error, HasSubstr("here: data.target_classes and data.target_class_mapping leave nothing of it; the class "
                               "'Car' (2 objects) maps to no class that is learned and is left out; 'car' differs only "
                               "in case, and names match exactly (lower_case_classes: true"));
  EXPECT_THAT(error, HasSubstr("'Person' (1 objects)"));
  EXPECT_THAT(
      mapped({.targets = {{"Car", "car"}, {"van", "car"}, {"Persom", "x"}}})->findings().sentences(),
      ElementsAre(HasSubstr("'Person' (1 objects) maps to no class that is learned and is left out; did you mean "
                            "'Persom'?"),
                  HasSubstr("'Tram'"), HasSubstr("'van' differs only in case")));
}

TEST_F(ClassMappingTest, LeavesOutImagesOfClassifiers) {
  for (const char* name : {"f/a/0.png", "f/b/1.png", "f/b/2.png", "f/c/3.png"}) picture(name);
  const auto data = map_classes(open_dataset({.format = "image_folder", .path = directory_ / "f"}),
                                {.target_classes = {}, .targets = {{"c", "x"}, {"b", "y"}}}, "here");
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->truth(0).label, 1);
  EXPECT_EQ(data->get(2).truth.label, 0);
  EXPECT_THAT(data->findings().sentences(), ElementsAre(HasSubstr("'a' (1 images) maps to no class")));
}

class FoldsTest : public ObjectFolderTest {
 protected:
  void SetUp() override {
    ObjectFolderTest::SetUp();
    for (int i = 0; i < 11; ++i) picture(str("f/c/", i, ".png"));
  }
  std::unique_ptr<Dataset> part(int64_t folds, int64_t fold, bool others, const std::string& folder = "f") {
    return open_dataset({.format = "image_folder",
                         .path = directory_ / folder,
                         .folds = folds,
                         .fold = FoldChoice{.fold = fold, .others = others}});
  }
};

TEST_F(FoldsTest, PartTheImages) {
  std::vector<std::string> all;
  for (int fold = 0; fold < 3; ++fold) {
    const auto validation = part(3, fold, false), training = part(3, fold, true);
    EXPECT_EQ(validation->size(), fold < 2 ? 4 : 3);
    EXPECT_EQ(validation->size() + training->size(), 11);
    for (int64_t i = 0; i < validation->size(); ++i) {
      all.push_back(validation->name(i));
      for (int64_t j = 0; j < training->size(); ++j) EXPECT_NE(validation->name(i), training->name(j));
    }
    EXPECT_NE(validation->content_hash(), training->content_hash());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.size(), 11u);
}

TEST_F(FoldsTest, DoNotDependOnWhereFilesLie) {
  std::filesystem::rename(directory_ / "f", directory_ / "g");
  for (int i = 0; i < 11; ++i) picture(str("f/c/", i, ".png"));
  const auto a = part(4, 1, false), b = part(4, 1, false, "g");
  ASSERT_EQ(a->size(), b->size());
  for (int64_t i = 0; i < a->size(); ++i)
    EXPECT_EQ(std::filesystem::path(a->name(i)).filename(), std::filesystem::path(b->name(i)).filename());
}

TEST_F(FoldsTest, RefuseWhatCannotBe) {
  EXPECT_THAT(message_of([&] { part(0, 0, false); }), HasSubstr("`folds` has to say into how many parts"));
  EXPECT_THAT(message_of([&] { part(3, 3, false); }), HasSubstr("has the folds 0 to 2; data.validation_fold is 3"));
  EXPECT_THAT(message_of([&] { part(12, 3, false); }), HasSubstr("has 11 images, too few for 12 folds"));
}

TEST(Sampling, SharesAnEpoch) {
  const std::vector<Portion> sources{{.images = 30, .weight = 2}, {.images = 10, .weight = 1}};
  const auto draws = [&](SamplingMode mode) {
    const EpochOrder order(sampled(sources, mode), 1, true);
    std::vector<int64_t> counts(2);
    for (const EpochOrder::Draw& draw : order.draws(0)) ++counts[draw.image >= 30];
    return counts;
  };
  EXPECT_THAT(draws(SamplingMode::kUserDefined), ElementsAre(60, 10));
  EXPECT_THAT(draws(SamplingMode::kProportional), ElementsAre(30, 10));
  EXPECT_THAT(draws(SamplingMode::kUniform), ElementsAre(20, 20));
}

}  // namespace
}  // namespace octet::data
