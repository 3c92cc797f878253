#include "app/training_record.h"

#include <gmock/gmock.h>

#include "app/scratch_folder.h"
#include "base/files.h"

namespace octet::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Records : public ScratchFolder {
 protected:
  static TrainingRecord record() {
    TrainingRecord r;
    r.stage = spec::Stage::kQat;
    r.spec.model.arch = "resnet20";
    r.spec.finetune.epochs = 3;
    r.model = "calibrated.onnx";
    r.model_hash = 0xfedcba9876543210;
    r.teacher_hash = 9;
    r.data_hash = 7;
    r.threads = 2;
    r.precision = "bf16";
    return r;
  }
};

TEST_F(Records, ReadsWhatItWrote) {
  TrainingRecord written = record();
  written.outputs["model.onnx"] = 0x8000000000000001;
  write_training_record(folder_, written);
  const std::optional<TrainingRecord> read = read_training_record(folder_);
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(differences(written, *read), IsEmpty());
  EXPECT_EQ(read->outputs, written.outputs);
  EXPECT_EQ(fingerprint(*read), fingerprint(written));
  EXPECT_EQ(epochs(*read), 3);
  EXPECT_STREQ(epochs_key(*read), "finetune.epochs");
}

TEST_F(Records, OfAnotherFormatOrDamagedIsNone) {
  EXPECT_FALSE(read_training_record(folder_).has_value());
  for (const char* text : {"", "{", "{\"format\": 99}", "[]"}) {
    write("training.json", text);
    EXPECT_FALSE(read_training_record(folder_).has_value()) << text;
  }
}

TEST_F(Records, TellWhatMadeARunAnother) {
  TrainingRecord other = record();
  other.spec.finetune.optimizer.lr *= 2;
  other.spec.finetune.epochs = 9;  // more epochs are the same run, gone on with
  other.threads = 1;
  other.model_hash = 1;
  const std::vector<std::string> found = differences(record(), other);
  EXPECT_THAT(found, ElementsAre(::testing::StartsWith("finetune.optimizer.lr: "), "finetune.threads: 2 -> 1",
                                 "the content of calibrated.onnx"));
  EXPECT_NE(fingerprint(other), fingerprint(record()));

  TrainingRecord longer = record();
  longer.spec.finetune.epochs = 9;
  EXPECT_EQ(fingerprint(longer), fingerprint(record()));

  TrainingRecord taught = record();
  taught.teacher_hash = 1;
  EXPECT_THAT(differences(record(), taught), ElementsAre(::testing::StartsWith("the content of the teacher")));
  EXPECT_NE(fingerprint(taught), fingerprint(record()));

  other.stage = spec::Stage::kControl;
  EXPECT_THAT(differences(record(), other), ElementsAre("--stage: qat -> control"));
}

TEST_F(Records, AModelIsFinishedWhileItIsUnchanged) {
  TrainingRecord r = record();
  write("model.onnx", "weights");
  EXPECT_FALSE(is_finished(folder_ / "model.onnx", r));
  r.outputs["model.onnx"] = hash64("weights");
  EXPECT_TRUE(is_finished(folder_ / "model.onnx", r));
  write("model.onnx", "others");
  EXPECT_FALSE(is_finished(folder_ / "model.onnx", r));
}

}  // namespace
}  // namespace octet::app
