#include "report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace octet::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Bench {
  std::ostringstream out;
  double time = 100;
  ProgressOptions options(bool terminal) {
    return {.label = "epoch 1/3", .total = 1000, .out = &out, .terminal = terminal, .width = 200, .clock = [this] {
              return time;
            }};
  }
  std::string take() {
    std::string text = out.str();
    out.str("");
    return text;
  }
};

TEST(Progress, ALogGetsALineNowAndThen) {
  Bench bench;
  Progress progress(bench.options(false));
  progress.update(100);
  EXPECT_EQ(bench.take(), "");
  bench.time += 20;
  progress.update(500, "loss 0.31");
  EXPECT_EQ(bench.take(), "epoch 1/3  50 %  500/1000 images  25 images/s  ETA 20 s  loss 0.31\n");
  bench.time += 1;
  progress.update(600);
  EXPECT_EQ(bench.take(), "");
  bench.time += 19;
  progress.update(1000);
  bench.take();
  progress.finish("loss 0.2");
  EXPECT_EQ(bench.take(), "epoch 1/3  1000 images  in 40 s  25 images/s  loss 0.2\n");
  progress.finish();
  progress.update(1000);
  EXPECT_EQ(bench.take(), "");
}

TEST(Progress, TellsWhenTheRunEnds) {
  Bench bench;
  Progress progress(bench.options(false));
  progress.set_later(2000, 30);
  bench.time += 20;
  progress.update(500);
  EXPECT_EQ(bench.take(), "epoch 1/3  50 %  500/1000 images  25 images/s  ETA 20 s (run 2:10)\n");
  bench.time += 20;
  progress.update(1000);
  bench.take();
  progress.finish("loss 0.2");
  EXPECT_EQ(bench.take(), "epoch 1/3  1000 images  in 40 s  25 images/s  run ETA 1:50  loss 0.2\n");
}

TEST(Progress, TheLastLineMayTellOfAPartOfTheTime) {
  Bench bench;
  Progress progress(bench.options(false));
  bench.time += 30;
  progress.update(1000);
  bench.take();
  bench.time += 10;  // a validation
  progress.finish("loss 0.2", 20);
  EXPECT_EQ(bench.take(), "epoch 1/3  1000 images  in 20 s  50 images/s  loss 0.2\n");
}

TEST(Progress, ATerminalGetsABarThatIsTakenAway) {
  Bench bench;
  {
    Progress progress(bench.options(true));
    bench.time += 10;
    progress.update(250);
    EXPECT_EQ(bench.take(),
              "\r\x1b[Kepoch 1/3  [######..................]  25 %  250/1000 images  25 images/s  ETA 30 s");
    bench.time += 0.01;
    progress.update(260);
    EXPECT_EQ(bench.take(), "");  // too soon
    progress.clear();
    EXPECT_EQ(bench.take(), "\r\x1b[K");
    progress.clear();
    EXPECT_EQ(bench.take(), "");
    bench.time += 1;
    progress.update(300);
    bench.take();
  }
  EXPECT_EQ(bench.take(), "\r\x1b[K");  // an exception leaves a clean line
}

TEST(Progress, ATerminalLineIsCutToItsWidth) {
  Bench bench;
  ProgressOptions options = bench.options(true);
  options.width = 12;
  options.label = "épochen";
  Progress progress(options);
  progress.update(1);
  EXPECT_EQ(bench.take(), "\r\x1b[Képochen  [.");
}

TEST(Progress, AResumedRunCountsOnlyItsOwnSpeed) {
  Bench bench;
  ProgressOptions options = bench.options(false);
  options.start = 500;
  Progress progress(options);
  bench.time += 20;
  progress.update(600);
  EXPECT_THAT(bench.take(), AllOf(HasSubstr("60 %"), HasSubstr("5 images/s"), HasSubstr("ETA 1:20")));
}

TEST(Progress, UnknownTotalHasNoBar) {
  Bench bench;
  ProgressOptions options = bench.options(true);
  options.total = 0;
  Progress progress(options);
  bench.time += 1;
  progress.update(10);
  EXPECT_EQ(bench.take(), "\r\x1b[Kepoch 1/3  10 images  10 images/s");
}

}  // namespace
}  // namespace octet::report
