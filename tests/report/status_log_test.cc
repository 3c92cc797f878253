#include "report/status_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "temp_directory.h"

namespace octet::report {
namespace {

class StatusLogTest : public DirectoryTest {};

TEST(StatusLine, HasTheFieldsOfTaoAndItsOwn) {
  const std::string line = status_line({.kind = "epoch",
                                        .status = RunStatus::kRunning,
                                        .message = "epoch 2 of 30",
                                        .epoch = 2,
                                        .max_epoch = 30,
                                        .kpi = {{"val_top1", 91.5}, {"loss", NAN}},
                                        .details = {{"file", "a\xff\"b\nc"}}},
                                       1795240245.5);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["date"], "11/21/2026");
  EXPECT_EQ(json["time"], "05:50:45");
  EXPECT_EQ(json["timestamp"], 1795240245.5);
  EXPECT_EQ(json["status"], "RUNNING");
  EXPECT_EQ(json["verbosity"], "INFO");
  EXPECT_EQ(json["kind"], "epoch");
  EXPECT_EQ(json["max_epoch"], 30);
  EXPECT_EQ(json["kpi"]["val_top1"], 91.5);
  EXPECT_TRUE(json["kpi"]["loss"].is_null());
  EXPECT_FALSE(json.contains("step"));
}

TEST_F(StatusLogTest, Appends) {
  const auto path = directory_ / "status.jsonl";
  for (int run = 0; run < 2; ++run) {
    StatusLog log(path);
    log.write({.kind = "train", .status = RunStatus::kStarted});
    log.write({.kind = "train", .status = RunStatus::kSuccess, .step = run});
  }
  std::istringstream lines(read_file(path));
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(lines, line);) records.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0]["status"], "STARTED");
  EXPECT_EQ(records[3]["step"], 1);
}

TEST_F(StatusLogTest, AFullDiskIsAClearError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  StatusLog log("/dev/full");
  EXPECT_THROW(log.write({.kind = "train"}), UserError);
  EXPECT_THROW(StatusLog(directory_ / "no" / "such" / "status.jsonl"), UserError);
}

}  // namespace
}  // namespace octet::report
