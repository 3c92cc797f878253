#include "train/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "onnx/export.h"

namespace octet::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json to_json(const std::vector<EpochRecord>& history) {
  json out = json::array();
  for (const EpochRecord& e : history)
    out.push_back({{"epoch", e.epoch}, {"loss", e.loss}, {"learning_rate", e.learning_rate}, {"seconds", e.seconds},
                   {"metrics", e.metrics}});
  return out;
}

RunState run_from_json(const json& j) {
  RunState run;
  run.epochs_done = j.at("epochs_done");
  run.batches_done = j.at("batches_done");
  run.loss_sum = j.at("loss_sum");
  run.best_metric = j.at("best_metric");
  run.best_epoch = j.at("best_epoch");
  run.fingerprint = j.at("fingerprint");
  for (const json& e : j.at("history"))
    run.history.push_back({e.at("epoch"), e.at("loss"), e.at("learning_rate"), e.at("seconds"),
                           e.at("metrics").get<std::map<std::string, double>>()});
  return run;
}

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

std::string history_json(const std::vector<EpochRecord>& history) { return to_json(history).dump(1) + "\n"; }

void save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, const ir::Graph& model) {
  const RunState& run = checkpoint.run;
  const json j = {{"format", 1}, {"epochs_done", run.epochs_done}, {"batches_done", run.batches_done},
                  {"loss_sum", run.loss_sum}, {"best_metric", run.best_metric}, {"best_epoch", run.best_epoch},
                  {"fingerprint", run.fingerprint}, {"history", to_json(run.history)}};
  write_directory_atomically(folder / checkpoint_name(run), [&](const fs::path& temporary) {
    onnx::export_model(model, temporary / "model.onnx", {.quantize_weights = false});
    write_file_atomically(temporary / "state.safetensors", safetensors_bytes(checkpoint.state));
    write_file_atomically(temporary / "run.json", j.dump(1) + "\n");
  });
}

std::optional<Checkpoint> load_latest_checkpoint(const fs::path& folder) {
  for (const Found& found : find_checkpoints(folder)) {
    try {
      Checkpoint out;
      const fs::path state = found.path / "state.safetensors";
      out.state = parse_safetensors(read_file(state), state.string());
      out.run = run_from_json(json::parse(read_file(found.path / "run.json")));
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

}  // namespace octet::train
