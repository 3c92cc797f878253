// What `octet train` says in a folder that holds a training already.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/network_files.h"

namespace {

namespace fs = std::filesystem;
using octet::test::NetworkFiles;
using octet::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

class TrainingFolder : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (IsSkipped()) return;
    write_images();
    const Outcome first = train();
    ASSERT_EQ(first.code, 0) << first.err;
    model_ = read("r/model.onnx");
  }
  Outcome train(const std::string& more = "") const {
    return octet("train -e spec.yaml -r r --set train.epochs=2 --set train.optimizer.lr=0.01 " + more);
  }
  void expect_refused(const std::string& more, const std::string& difference) const {
    const Outcome refused = train(more);
    EXPECT_EQ(refused.code, 2) << more;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(difference), HasSubstr("--force"))) << more;
    EXPECT_EQ(read("r/model.onnx"), model_) << more;
  }

  std::string model_;
};

TEST_F(TrainingFolder, OnlyTheSameCommandIsNothingToDo) {
  EXPECT_THAT(train().err, HasSubstr("nothing to do"));
  // What changes no result is no other command.
  EXPECT_THAT(train("--set data.threads=1 --set classification.top_k=2 --set finetune.epochs=9").err,
              HasSubstr("nothing to do"));
  expect_refused("--set train.optimizer.lr=0.5", "train.optimizer.lr: 0.01 -> 0.5");
  expect_refused("--set train.epochs=1", "train.epochs: 2 -> 1");
  expect_refused("--set model.arch=resnet32 --set train.seed=3",
                 "model.arch: resnet20 -> resnet32, train.seed: 1 -> 3");
  expect_refused("--set train.threads=2", "train.threads: 1 -> 2");
  expect_refused("--set train.epochs=3 --set train.seed=3", "train.epochs: 2 -> 3, train.seed: 1 -> 3");
  fs::copy(folder_ + "/data", folder_ + "/more", fs::copy_options::recursive);
  expect_refused("--set data.train.path=more", "data.train.path: ");
  fs::copy(folder_ + "/r/model.onnx", folder_ + "/start.onnx");
  expect_refused("--stage control -m start.onnx", "differs from this command in --stage: float -> control;");
  // The images themselves.
  fs::copy(folder_ + "/data/a/0.ppm", folder_ + "/data/a/6.ppm");
  expect_refused("", "the images of data.train");
  fs::remove(folder_ + "/data/a/6.ppm");
  EXPECT_THAT(train().err, HasSubstr("nothing to do"));
}

TEST_F(TrainingFolder, MoreEpochsGoOnFromTheLastOne) {
  const Outcome more = train("--set train.epochs=3");
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.err, AllOf(HasSubstr("going on after epoch 2 of 3"), HasSubstr("schedule")));
  EXPECT_THAT(read("r/history.json"), AllOf(HasSubstr("\"epoch\": 1"), HasSubstr("\"epoch\": 3")));
  EXPECT_THAT(train("--set train.epochs=3").err, HasSubstr("nothing to do"));
  EXPECT_EQ(train().code, 2);  // two epochs are now fewer
  fs::remove_all(folder_ + "/r/checkpoints");
  EXPECT_THAT(train("--set train.epochs=4").err, HasSubstr("no checkpoint"));
}

// The bytes depend on the threads: who does not choose them keeps those that the run began with.
TEST_F(TrainingFolder, ARunKeepsItsThreads) {
  EXPECT_THAT(train("--set train.threads=0").err, HasSubstr("nothing to do"));
}

TEST_F(TrainingFolder, AnOutputThatIsNotTheRunsIsMadeAgain) {
  write("r/model.onnx", "something else");
  const Outcome again = train();
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(read("r/model.onnx") == model_);
  fs::remove(folder_ + "/r/training.json");
  const Outcome unknown = train();
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("training.json"));
  const Outcome anew = train("--force");
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_TRUE(read("r/model.onnx") == model_);
}

TEST_F(TrainingFolder, TwoRunsDoNotShareIt) {
  const int file = ::open((folder_ + "/r/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  ASSERT_EQ(::ftruncate(file, 0), 0);
  ASSERT_EQ(::pwrite(file, "4711\n", 5, 0), 5);
  const Outcome second = train("--force");
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("r: process 4711 is at work there"));
  EXPECT_EQ(read("r/model.onnx"), model_);  // nothing was removed
  ::close(file);
  EXPECT_EQ(train().code, 0);
}

TEST_F(TrainingFolder, ABatchBeyondTheImagesIsSaidInNumbers) {
  const Outcome outcome = octet("train -e spec.yaml -r s --set train.batch_size_per_gpu=64");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("64"), HasSubstr("18"), HasSubstr("train.batch_size_per_gpu")));
}

}  // namespace
