#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "onnx/export.h"

namespace octet::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Found {
  int64_t epoch, batch;
  fs::path path;
};

// Newest first.
std::vector<Found> find_checkpoints(const fs::path& folder) {
  static const std::regex name("epoch-([0-9]{1,9})(-batch-([0-9]{1,9}))?");
  std::vector<Found> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::smatch match;
    const std::string text = entry.path().filename().string();
    if (entry.is_directory() && std::regex_match(text, match, name))
      out.push_back({std::stoll(match[1]), match[3].matched ? std::stoll(match[3]) : 0, entry.path()});
  }
  std::sort(out.begin(), out.end(),
            [](const Found& a, const Found& b) { return std::pair(a.epoch, a.batch) > std::pair(b.epoch, b.batch); });
  return out;
}

}  // namespace

std::string checkpoint_name(const RunState& run) {
  std::string name = str("epoch-", run.epochs_done);
  if (run.batches_done > 0) name += str("-batch-", run.batches_done);
  return name;
}

void save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, const ir::Graph& model) {
  write_directory_atomically(folder / checkpoint_name(checkpoint.run), [&](const fs::path& temporary) {
    onnx::export_model(model, temporary / "model.onnx", {.quantize_weights = false});
    write_file_atomically(temporary / "state.safetensors", safetensors_bytes(checkpoint.state));
    write_file_atomically(temporary / "run.json", run_state_json(checkpoint.run));
  });
}

std::optional<Checkpoint> load_latest_checkpoint(const fs::path& folder) {
  for (const Found& found : find_checkpoints(folder)) {
    try {
      Checkpoint out;
      const fs::path state = found.path / "state.safetensors";
      out.state = parse_safetensors(read_file(state), state.string());
      const fs::path run = found.path / "run.json";
      out.run = parse_run_state(read_file(run), run.string());
      return out;
    } catch (const std::exception& e) {
      log_warning("checkpoint ", found.path.string(), " is passed over: ", e.what());
    }
  }
  return std::nullopt;
}

void prune_checkpoints(const fs::path& folder, int64_t keep) {
  const std::vector<Found> found = find_checkpoints(folder);
  std::error_code error;
  for (size_t i = static_cast<size_t>(std::max<int64_t>(keep, 1)); i < found.size(); i++)
    fs::remove_all(found[i].path, error);
}

}  // namespace octet::checkpoint
