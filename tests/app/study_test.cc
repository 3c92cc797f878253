#include "app/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "app/scratch_folder.h"

namespace octet::app {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

TEST(Study, EachStepReadsWhatStepsBeforeItMade) {
  const std::vector<StudyStep> steps = study_steps({"-e", "s.yaml", "--set", "train.seed=2"}, "resnet20", "r/resnet20");
  std::set<std::string> made;
  for (const StudyStep& step : steps) {
    for (size_t i = 1; i + 1 < step.arguments.size(); ++i) {
      const std::string& flag = step.arguments[i];
      if (flag == "-m" || flag == "--engine_file" || flag == "--baseline") {
        EXPECT_THAT(made, Contains(step.arguments[i + 1])) << step.arguments[0];
      }
    }
    EXPECT_TRUE(made.insert(step.output.string()).second) << step.output;
  }
  EXPECT_THAT(steps.front().arguments,
              ElementsAre("train", "-e", "s.yaml", "--set", "train.seed=2", "--set", "model.arch=resnet20", "-r",
                          "r/resnet20/float", "--stage", "float"));
  EXPECT_THAT(made, Contains("r/resnet20/verify.json"));
}

class StudyReport : public ScratchFolder {};

TEST_F(StudyReport, ComparesStagesAndSpeed) {
  for (const auto& [stage, score] : {std::pair("float", 91.25), {"ptq", 90.0}, {"engine", 91.0}})
    write(std::string("net/") + stage + ".json",
          nlohmann::json{{"metric", "top1"}, {"metric_title", "top-1 %"}, {"top1", score}}.dump());
  write("net/bench.json", R"({"results": [{"kind": "octet_int8", "min_ms": 0.5}, {"kind": "octet_fp32", "min_ms": 2}],
                              "layers": []})");
  const std::vector<StudiedNetwork> networks = {{"net", read_results_folder(std::filesystem::path(folder_) / "net")}};
  const report::Report report = study_report(networks);
  ASSERT_EQ(report.tables.size(), 2u);
  EXPECT_EQ(report.tables[0].title, "Accuracy: top-1 %");
  EXPECT_THAT(report.tables[0].rows, ElementsAre(ElementsAre("net", "91.25", "90.00", "", "", "91.00")));
  EXPECT_THAT(report.tables[1].rows, ElementsAre(ElementsAre("net", "2.000", "0.500", "4.00", "")));
  ASSERT_EQ(report.bars.size(), 2u);
  EXPECT_EQ(report.bars[0].bars.size(), 3u);
  EXPECT_EQ(report.bars[1].bars.at(0).text, "4.00 x");
  EXPECT_EQ(study_json(networks).at("net").at("int8_ms"), 0.5);
}

}  // namespace
}  // namespace octet::app
