// Checkpoints: directories `epoch-N` (or `epoch-N-batch-B` for one taken within epoch N+1) that appear whole or not at
// all. model.onnx is the network as it stood; state.safetensors has the exact parameters, buffers, optimizer state and
// weight average; run.json the position, the history and the fingerprint of the experiment.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "train/safetensors.h"

namespace octet::train {

// What is known at the end of an epoch (1-based).
struct EpochRecord {
  int64_t epoch = 0;
  double loss = 0;  // mean over the epoch's batches
  double learning_rate = 0;  // at its last step
  double seconds = 0;
  std::map<std::string, double> metrics;  // of the evaluation; empty when there was none
};

struct RunState {
  int64_t epochs_done = 0;   // whole epochs
  int64_t batches_done = 0;  // of the epoch after those
  double loss_sum = 0;       // over these batches
  double best_metric = -1e300;
  int64_t best_epoch = 0;
  std::string fingerprint;
  std::vector<EpochRecord> history;
};

struct Checkpoint {
  RunState run;
  NamedTensors state;
};

std::string checkpoint_name(const RunState& run);

// Writes folder/checkpoint_name(run).
void save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint, const ir::Graph& model);

// The newest whole checkpoint in `folder`; nothing when there is none. A damaged one is passed over with a warning.
std::optional<Checkpoint> load_latest_checkpoint(const std::filesystem::path& folder);

// Removes all but the newest `keep` checkpoints.
void prune_checkpoints(const std::filesystem::path& folder, int64_t keep);

// The history as JSON text and back: `history.json` of a results folder.
std::string history_json(const std::vector<EpochRecord>& history);

}  // namespace octet::train
