// Checkpoints: directories `epoch-N` (or `epoch-N-batch-B` for one taken within epoch N+1) that appear whole or not at
// all. model.onnx is the network as it stood; state.safetensors has the exact parameters, buffers, optimizer state and
// weight average; run.json the position, the history, the fingerprint of the experiment and the
// checksums of the other two.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/run_state.h"
#include "checkpoint/safetensors.h"
#include "ir/graph.h"

namespace octet::checkpoint {

struct Checkpoint {
  RunState run;  // checksums are those of the files that were read; save_checkpoint() makes its own
  NamedTensors state;
};

std::string checkpoint_name(const RunState& run);

// Writes folder/checkpoint_name(run).
void save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint, const ir::Graph& model);

// The newest checkpoint in `folder` that is whole: its files have the checksums of run.json, every number lies in its
// range, and `usable` does not throw a UserError. Others are passed over with a warning. Nothing when there is none.
std::optional<Checkpoint> load_latest_checkpoint(const std::filesystem::path& folder,
                                                 const std::function<void(const Checkpoint&)>& usable = {});

// Removes all but the newest `keep` checkpoints up to `run`, and those after it, which were passed over.
void prune_checkpoints(const std::filesystem::path& folder, const RunState& run, int64_t keep);

// The best model so far, in folder/best: model.onnx, and best.json with the epoch, the metric and the model's checksum.
void save_best(const std::filesystem::path& folder, int64_t epoch, const std::string& metric, double value,
               const ir::Graph& model);
// UserError when it is missing or damaged.
void require_best(const std::filesystem::path& folder);
// The model; UserError also when it is that of another epoch.
ir::Graph load_best(const std::filesystem::path& folder, int64_t epoch);

}  // namespace octet::checkpoint
