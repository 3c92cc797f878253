// What a results folder of `octet train` was made with, in its training.json, so that a later command with another
// spec, stage, model or data set is not answered with old results.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/experiment.h"

namespace octet::app {

struct TrainingRecord {
  spec::Stage stage = spec::Stage::kFloat;
  spec::ExperimentSpec spec;
  std::string model;                        // the file that training started from; empty: none
  uint64_t model_hash = 0;                  // of its content
  uint64_t teacher_hash = 0;                // of the teacher's file; 0: none
  uint64_t data_hash = 0;                   // of the training images
  int64_t workers = 1;                      // ranks that shared the images; a run may go on with others
  int64_t threads = 0;                      // as they are, never 0: sums depend on how they are split
  std::string precision;                    // as it is: what `auto` meant on that machine
  std::map<std::string, uint64_t> outputs;  // hash of each finished model by its file name
  std::string command;                      // that made it, for people
  int64_t images = 0;                       // that it learned from
};

// Nothing when the folder has none, or one that this version cannot read.
std::optional<TrainingRecord> read_training_record(const std::filesystem::path& results);
void write_training_record(const std::filesystem::path& results, const TrainingRecord& record);

// What makes two runs different (of two stages only that), "train.optimizer.lr: 0.1 -> 0.01"; the number of epochs is
// left out.
std::vector<std::string> differences(const TrainingRecord& before, const TrainingRecord& after);
int64_t epochs(const TrainingRecord& record);
const char* epochs_key(const TrainingRecord& record);  // "train.epochs"

// Of everything that a checkpoint's continuation depends on but the number of epochs, and of workers and threads, which
// differences() compares.
std::string fingerprint(const TrainingRecord& record);

// Whether the file is the finished model of this record, unchanged since.
bool is_finished(const std::filesystem::path& output, const TrainingRecord& record);

}  // namespace octet::app
