#include "app/evaluation_record.h"

#include <gmock/gmock.h>

#include <array>
#include <limits>
#include <span>

#include "app/results_report.h"
#include "app/scratch_folder.h"
#include "data/image.h"
#include "data/memory_dataset.h"

namespace octet::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

std::unique_ptr<data::Dataset> three_images() {
  data::MemoryDataset::Contents contents;
  contents.height = contents.width = contents.channels = 1;
  contents.class_names = {"car", "person"};
  contents.parts.push_back({"pictures", "abc", 0, 1, 3});
  contents.labels = {0, 1, 0};
  return std::make_unique<data::MemoryDataset>(std::move(contents), 0);
}

tasks::Details some_details() {
  return {.figures = {{{.name = "coco_ap", .title = "COCO AP", .unit = "%"}, 41.25}},
          .columns = {{.name = "ap", .title = "AP", .unit = "%"}, {.name = "objects", .title = "objects", .unit = ""}},
          .classes = {{75.5, 12}, {kNoLoss, 0}},
          .curves = {{.name = "precision_recall",
                      .title = "Precision over recall",
                      .x_label = "recall",
                      .y_label = "precision",
                      .lines = {{.label = 0, .x = {0.5, 1}, .y = {1, 0.75}}}}},
          .worst = {{.image = 2,
                     .text = "1 missed, 0 wrong",
                     .marks = {{.object = {.box = {1, 2, 3, 4}, .label = 1}, .outcome = tasks::Outcome::kMissed}}}}};
}

TEST(EvaluationRecord, HasNamesInThePlaceOfNumbers) {
  const auto images = three_images();
  const nlohmann::ordered_json j = to_json(some_details(), *images);
  EXPECT_EQ(j["classes"][0]["class"], "car");
  EXPECT_EQ(j["classes"][0]["ap"], 75.5);
  EXPECT_EQ(j["curves"][0]["lines"][0]["class"], "car");
  EXPECT_EQ(j["worst"][0]["name"], images->name(2));
  EXPECT_EQ(j["worst"][0]["objects"][0]["class"], "person");
  EXPECT_EQ(j["worst"][0]["objects"][0]["outcome"], "missed");
  EXPECT_TRUE(j["classes"][1]["ap"].is_null());
}

TEST(EvaluationRecord, NamesWhatIsTakenForWhat) {
  tasks::Details details = some_details();
  details.confusion = {8, 2, 3, 3};
  const nlohmann::ordered_json j = to_json(details, *three_images());
  const std::optional<report::Matrix> matrix = confusion_of(j);
  ASSERT_TRUE(matrix.has_value());
  EXPECT_THAT(matrix->labels, ElementsAre("car", "person"));
  EXPECT_THAT(matrix->counts, ElementsAre(ElementsAre(8, 2), ElementsAre(3, 3)));
  const report::Table table = confusion_table(j);
  EXPECT_THAT(table.rows,
              ElementsAre(ElementsAre("person", "car", "3", "50.00"), ElementsAre("car", "person", "2", "20.00")));
  EXPECT_FALSE(confusion_of(to_json(some_details(), *three_images())).has_value());
  EXPECT_THAT(confusion_table(to_json(some_details(), *three_images())).rows, IsEmpty());
}

TEST(EvaluationRecord, MakesTheTablesThatPeopleRead) {
  const nlohmann::ordered_json j = to_json(some_details(), *three_images());
  const report::Table classes = class_table(j), figures = figure_table(j);
  EXPECT_THAT(classes.columns, ElementsAre("class", "AP %", "objects"));
  EXPECT_THAT(classes.rows, ElementsAre(ElementsAre("car", "75.50", "12"), ElementsAre("person", "-", "0")));
  EXPECT_THAT(figures.rows, ElementsAre(ElementsAre("COCO AP %", "41.25")));
  ASSERT_THAT(curves_of(j), SizeIs(1));
  EXPECT_THAT(curves_of(j)[0].series.at(0).y, ElementsAre(1, 0.75));
  EXPECT_THAT(class_table({{"map", 3}}).rows, IsEmpty());
  EXPECT_THAT(curves_of({{"map", 3}}), IsEmpty());
}

TEST(EvaluationRecord, AChartHasTheWorstClasses) {
  tasks::Details details{.columns = {{.name = "ap", .title = "AP", .unit = "%"}}, .curves = {{.title = "t"}}};
  for (int label = 0; label < 9; ++label) {
    details.classes.push_back({label == 3 ? kNoLoss : 100.0 - label});
    details.curves[0].lines.push_back({.label = label, .x = {0}, .y = {0}});
  }
  const std::vector<report::Curve> curves = curves_of(to_json(details, *three_images()));
  ASSERT_THAT(curves, SizeIs(1));
  std::vector<std::string> names;
  for (const report::Series& series : curves[0].series) names.push_back(series.name);
  EXPECT_THAT(names, ElementsAre("2", "4", "5", "6", "7", "8"));
}

class DetailedReport : public ScratchFolder {};

TEST_F(DetailedReport, ShowsTheLastStageAndWhatEachClassLost) {
  nlohmann::ordered_json result = {{"metric", "map"}, {"metric_title", "mAP %"}, {"map", 75.5}};
  tasks::Details details = some_details();
  result.update(to_json(details, *three_images()));
  write("float.json", result.dump());
  details.classes[0][0] = 70;
  result.update(to_json(details, *three_images()));
  write("engine.json", result.dump());
  const report::Report report = results_report(read_results_folder(folder_), {});
  std::vector<std::string> titles;
  for (const report::Table& table : report.tables) titles.push_back(table.title);
  ASSERT_THAT(titles, ElementsAre("Accuracy, size and speed", "AP % of each class by stage", "Classes: INT8 engine",
                                  "All figures: INT8 engine"));
  EXPECT_THAT(report.tables[1].rows,
              ElementsAre(ElementsAre("car", "75.50", "70.00"), ElementsAre("person", "-", "-")));
  EXPECT_THAT(report.tables[2].rows[0], ElementsAre("car", "70.00", "12"));
  ASSERT_THAT(report.curves, SizeIs(1));
  EXPECT_EQ(report.curves[0].title, "Precision over recall: INT8 engine");
}

// The mark of the missed object is blue, and nothing else in the gray picture is.
TEST_F(DetailedReport, DrawsTheWorstImages) {
  data::MemoryDataset::Contents contents;
  contents.height = contents.width = 64, contents.channels = 1;
  contents.class_names = {"car", "person"};
  contents.parts.push_back({"pictures", std::string(3 * 64 * 64, '\x80'), 0, 64 * 64, 3});
  contents.labels = {0, 1, 0};
  const data::MemoryDataset images(std::move(contents), 0);
  tasks::Details details = some_details();
  details.worst[0].marks[0].object.box = {8, 24, 40, 56};
  nlohmann::ordered_json result = {{"metric", "map"}, {"metric_title", "mAP %"}, {"map", 75.5}};
  result.update(to_json(details, images));
  write("qat.json", result.dump());
  const ResultsFolder results = read_results_folder(folder_);
  EXPECT_TRUE(results.has_worst_images());
  EXPECT_THAT(results_report(results, {}).pictures, IsEmpty());
  const report::Report report = results_report(results, {}, &images);
  ASSERT_THAT(report.pictures, SizeIs(1));
  EXPECT_EQ(report.pictures[0].title, "1 missed, 0 wrong: " + images.name(2));
  const std::string& bytes = report.pictures[0].bytes;
  const data::Image picture = data::decode_image(std::as_bytes(std::span(bytes.data(), bytes.size())));
  ASSERT_EQ(picture.width, 64);
  const auto at = [&](int x, int y) {
    const uint8_t* p = picture.row(y) + 3 * x;
    return std::array<int, 3>{p[0], p[1], p[2]};
  };
  EXPECT_EQ(at(8, 40), (std::array<int, 3>{0, 114, 178}));
  EXPECT_EQ(at(24, 40), (std::array<int, 3>{128, 128, 128}));
  // Other images under these numbers are not drawn.
  result["worst"][0]["name"] = "another";
  write("qat.json", result.dump());
  EXPECT_THAT(results_report(read_results_folder(folder_), {}, &images).pictures, IsEmpty());
}

}  // namespace
}  // namespace octet::app
