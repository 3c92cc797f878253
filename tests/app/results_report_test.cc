#include "app/results_report.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "app/scratch_folder.h"
#include "app/training_record.h"
#include "base/error.h"

namespace octet::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ResultsReport : public ScratchFolder {
 protected:
  void write_evaluation(const std::string& name, double map) const {
    write(name, nlohmann::json{{"metric", "map"}, {"metric_title", "mAP %"}, {"map", map}}.dump());
  }
};

TEST_F(ResultsReport, AnEmptyFolderHasNothingToSay) {
  const ResultsFolder results = read_results_folder(folder_);
  EXPECT_TRUE(results.empty());
  EXPECT_THAT(stage_table(results).rows, IsEmpty());
  EXPECT_THAT(results_report(results, {}).curves, IsEmpty());
}

TEST_F(ResultsReport, StagesAreComparedByTheMetricOfTheTask) {
  write_evaluation("float.json", 91.25);
  write_evaluation("control.json", 91.5);
  write_evaluation("pruned.json", 12.5);
  write_evaluation("engine.json", 90.75);
  write("model.octet", std::string(3 << 20, 'x'));
  write("bench.json", R"({"results": [{"kind": "octet_int8", "min_ms": 0.5}, {"kind": "octet_fp32", "min_ms": 2}],
                          "layers": [{"name": "conv", "op": "conv", "precision": "int8", "kernel": "k", "us": 7.25,
                                      "reason": ""}]})");
  const ResultsFolder results = read_results_folder(folder_);
  const report::Table table = stage_table(results);
  EXPECT_THAT(table.columns, ElementsAre("stage", "mAP %", "file MiB", "ms an image", "what"));
  ASSERT_THAT(table.rows, SizeIs(4));
  EXPECT_THAT(table.rows[0], ElementsAre("float", "91.25", "", "2.000", HasSubstr("FP32 engine")));
  EXPECT_THAT(table.rows[2], ElementsAre("pruned", "12.50", "", "", HasSubstr("not trained again")));
  EXPECT_THAT(table.rows[3], ElementsAre("INT8 engine", "90.75", "3.00", "0.500", HasSubstr("compiled")));

  const report::Report report = results_report(results, {});
  ASSERT_THAT(report.highlights, SizeIs(2));
  EXPECT_EQ(report.highlights[0].label, "INT8 engine, mAP %");
  EXPECT_EQ(report.highlights[0].note, "-0.75 points against the float control");
  EXPECT_EQ(report.highlights[1].note, "4.00 times faster than the FP32 engine");
  ASSERT_THAT(report.bars, SizeIs(1));
  EXPECT_EQ(report.bars[0].bars.at(0).to, 7.25);
}

TEST_F(ResultsReport, CurvesLeaveOutEpochsThatWereNotMeasured) {
  write_evaluation("float.json", 50);
  write("qat/history.json", R"([{"epoch": 1, "loss": 0.5, "metrics": {}},
                                {"epoch": 2, "loss": 0.25, "metrics": {"val_map": 60}}])");
  const report::Report report = results_report(read_results_folder(folder_), {});
  ASSERT_THAT(report.curves, SizeIs(2));
  EXPECT_THAT(report.curves[0].series.at(0).y, ElementsAre(0.5, 0.25));
  EXPECT_EQ(report.curves[1].title, "qat: validation, mAP %");
  EXPECT_THAT(report.curves[1].series.at(0).x, ElementsAre(2));
}

TEST_F(ResultsReport, SaysOnHowManyImagesItStands) {
  write("engine.json", R"({"metric": "map", "metric_title": "mAP %", "map": 50, "images": 120})");
  write("verify.json", R"({"holds": true, "images": 20, "tensors": []})");  // without LibTorch: no agreement
  const ResultsFolder results = read_results_folder(folder_);
  EXPECT_TRUE(results.summary().at("engine_agreement").is_null());
  std::map<std::string, std::string> facts;
  for (const report::Fact& fact : results_report(results, {}).facts) facts[fact.key] = fact.value;
  EXPECT_EQ(facts["images measured"], "120");
  EXPECT_EQ(facts["images verified"], "20");
  EXPECT_THAT(facts["Octet"], ::testing::MatchesRegex("[0-9.]+"));
  EXPECT_EQ(facts.count("runs timed"), 0u);
}

TEST_F(ResultsReport, ShowsTheCommandsThatMadeIt) {
  write("float.json",
        R"({"metric": "map", "metric_title": "mAP %", "map": 50, "command": "octet evaluate -m 'a b.onnx'"})");
  std::filesystem::create_directories(folder_ / "float");
  write_training_record(folder_ / "float", {.command = "octet train -e spec.yaml", .images = 1234});
  const report::Report report = results_report(read_results_folder(folder_), {});
  const report::Table& table = report.tables.back();
  EXPECT_EQ(table.title, "How it was made");
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_THAT(table.rows[0], ElementsAre("training, float", "octet train -e spec.yaml"));
  EXPECT_THAT(table.rows[1], ElementsAre("measurement, float", "octet evaluate -m 'a b.onnx'"));
  EXPECT_THAT(report.facts, ::testing::Contains(::testing::Field(&report::Fact::value, "1234")));
}

TEST_F(ResultsReport, WhatDidNotHoldIsMarkedAsBad) {
  const std::string tensors =
      R"("tensors": [{"tensor": "t", "elements": 8, "different": 1, "ties": 0, "violations": 1}]})";
  write("verify.json", R"({"holds": false, "agreement": 0.5, "agree": 1, "images": 2, )" + tensors);
  const report::Report bad = results_report(read_results_folder(folder_), {});
  ASSERT_THAT(bad.highlights, SizeIs(1));
  EXPECT_EQ(bad.highlights[0].tone, report::Tone::kBad);
  EXPECT_THAT(bad.tables.back().rows, ElementsAre(ElementsAre("t", "8", "1", "0", "1")));
}

TEST_F(ResultsReport, ADamagedFileIsNamed) {
  write("qat.json", "{\"top1\": ");
  try {
    read_results_folder(folder_);
    FAIL() << "read";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("qat.json: is damaged"));
  }
}

}  // namespace
}  // namespace octet::app
