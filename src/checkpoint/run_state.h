// Where a training run stands, and its JSON forms: run.json of a checkpoint, history.json of a results folder.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace octet::checkpoint {

// What is known at the end of an epoch.
struct EpochRecord {
  int64_t epoch = 0;         // 1-based
  double loss = 0;           // mean over the epoch's batches; finite
  double learning_rate = 0;  // at its last step
  double seconds = 0;
  std::map<std::string, double> metrics;  // of the evaluation, NaN and infinity included; empty when there was none
};

struct RunState {
  int64_t epochs_done = 0;   // whole epochs
  int64_t batches_done = 0;  // of the epoch after those: its steps (of several batches each, with train.accumulate)
  int64_t ranks = 1;         // that shared the epoch's images
  int64_t skipped = 0;       // of these, as their loss was not finite
  double loss_sum = 0;       // over the others
  double back_off = 1;       // of the learning rate, for the same reason
  double best_metric = -1e300;
  int64_t best_epoch = 0;  // 0: nothing was evaluated yet
  std::string fingerprint;
  std::vector<EpochRecord> history;           // ascending epochs, none after epochs_done
  std::map<std::string, uint64_t> checksums;  // hash64() of the files beside run.json, by name
};

inline constexpr int64_t kMaxEpochs = 1'000'000'000, kMaxBatches = 1'000'000'000, kMaxRanks = 1'000'000;

// The text of run.json. It ends with a checksum of itself.
std::string run_state_json(const RunState& run);

// What run_state_json() wrote. UserError naming `origin` and the entry when it is damaged: every number has its range,
// and the whole has a checksum. Any bytes are safe to read.
RunState parse_run_state(std::string_view text, const std::string& origin);

// The text of history.json.
std::string history_json(const std::vector<EpochRecord>& history);

}  // namespace octet::checkpoint
