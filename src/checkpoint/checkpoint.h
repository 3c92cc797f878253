// Checkpoints: directories `epoch-N` (or `epoch-N-batch-B` for one taken within epoch N+1) that appear whole or not at
// all. model.onnx is the network as it stood; state.safetensors has the exact parameters, buffers, optimizer state and
// weight average; run.json the position, the history and the fingerprint of the experiment.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/run_state.h"
#include "checkpoint/safetensors.h"
#include "ir/graph.h"

namespace octet::checkpoint {

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

}  // namespace octet::checkpoint
