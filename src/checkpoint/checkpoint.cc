#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "onnx/export.h"
#include "onnx/import.h"

namespace octet::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "model.onnx";
constexpr const char* kState = "state.safetensors";

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

Checkpoint load_checkpoint(const fs::path& path) {
  Checkpoint out;
  out.run = parse_run_state(read_file(path / "run.json"), (path / "run.json").string());
  if (path.filename() != checkpoint_name(out.run)) fail("run.json is that of ", checkpoint_name(out.run));
  std::string state;
  for (const char* name : {kModel, kState}) {
    std::string bytes = read_file(path / name);
    const auto checksum = out.run.checksums.find(name);
    if (checksum == out.run.checksums.end() || checksum->second != hash64(bytes))
      fail(name, " does not have the checksum that run.json names; it is damaged");
    state.swap(bytes);  // the last one is the state
  }
  out.state = parse_safetensors(state, (path / kState).string());
  return out;
}

struct Best {
  nlohmann::json record;
  std::string model;
};

Best read_best(const fs::path& folder) {
  const fs::path path = folder / "best";
  Best best{nlohmann::json::parse(read_file(path / "best.json"), nullptr, false), read_file(path / kModel)};
  if (!best.record.is_object() || best.record.value("checksum", nlohmann::json()) != hex64(hash64(best.model)))
    fail(path.string(), ": is damaged: model.onnx does not have the checksum of best.json");
  return best;
}

}  // namespace

std::string checkpoint_name(const RunState& run) {
  std::string name = str("epoch-", run.epochs_done);
  if (run.batches_done > 0) name += str("-batch-", run.batches_done);
  return name;
}

void save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, const ir::Graph& model) {
  RunState run = checkpoint.run;
  run.checksums.clear();
  write_directory_atomically(folder / checkpoint_name(run), [&](const fs::path& temporary) {
    const auto write = [&](const char* name, const std::string& bytes) {
      run.checksums[name] = hash64(bytes);
      write_file_atomically(temporary / name, bytes);
    };
    write(kModel, onnx::export_bytes(model, {.quantize_weights = false}));
    write(kState, safetensors_bytes(checkpoint.state));
    write_file_atomically(temporary / "run.json", run_state_json(run));
  });
}

std::optional<Checkpoint> load_latest_checkpoint(const fs::path& folder,
                                                 const std::function<void(const Checkpoint&)>& usable) {
  for (const Found& found : find_checkpoints(folder)) {
    try {
      Checkpoint out = load_checkpoint(found.path);
      if (usable) usable(out);
      return out;
    } catch (const UserError& e) {
      log_warning("checkpoint ", found.path.string(), " is passed over: ", e.what());
    }
  }
  return std::nullopt;
}

void prune_checkpoints(const fs::path& folder, const RunState& run, int64_t keep) {
  std::error_code error;
  int64_t kept = 0;
  for (const Found& found : find_checkpoints(folder)) {
    const bool after = std::pair(found.epoch, found.batch) > std::pair(run.epochs_done, run.batches_done);
    if (after || kept++ >= std::max<int64_t>(keep, 1)) fs::remove_all(found.path, error);
  }
}

void save_best(const fs::path& folder, int64_t epoch, const std::string& metric, double value, const ir::Graph& model) {
  write_directory_atomically(folder / "best", [&](const fs::path& temporary) {
    const std::string bytes = onnx::export_bytes(model, {.quantize_weights = false});
    write_file_atomically(temporary / kModel, bytes);
    const nlohmann::json j = {{"epoch", epoch}, {metric, value}, {"checksum", hex64(hash64(bytes))}};
    write_file_atomically(temporary / "best.json", j.dump(1) + "\n");
  });
}

void require_best(const fs::path& folder) {
  read_best(folder);
}

ir::Graph load_best(const fs::path& folder, int64_t epoch) {
  const Best best = read_best(folder);
  if (best.record.value("epoch", nlohmann::json()) != epoch)
    fail((folder / "best").string(), ": is not the model of epoch ", epoch, ", which was the best");
  return onnx::import_bytes(best.model, {});
}

}  // namespace octet::checkpoint
