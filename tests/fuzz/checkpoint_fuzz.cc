// Any bytes as the files of checkpoints. An input is run.json, and behind zero bytes the header of
// state.safetensors, best.json and the data of the tensors.
// They are refused with a UserError, or they are the same when they are written and read again. Checksums are repaired,
// so that they refuse nothing; a checkpoint of which both files can be read is the one that is found in its folder.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "onnx/export.h"
#include "scratch_folder.h"

namespace octet::testing {
namespace {

using nlohmann::json;

// Nothing where it is refused.
template <typename Parse>
auto parsed(Parse parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::array<std::string, 3> pieces(std::string_view input) {
  std::array<std::string, 3> out;
  for (std::string& piece : out) {
    const size_t end = std::min(input.find('\0'), input.size());
    piece = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  const uint64_t length = out[1].size();
  out[1].insert(0, reinterpret_cast<const char*>(&length), sizeof length);
  out[1] += input;
  return out;
}

const std::string& model_bytes() {
  static const std::string bytes = [] {
    ir::Graph graph;
    graph.add_output(graph.add(ir::OpKind::kRelu, "y", {graph.add_input("x", {ir::DataType::kFloat32, ir::Shape{1}})}));
    return onnx::export_bytes(graph);
  }();
  return bytes;
}

// Real numbers stay so when they are whole: checksums are those of the text that Octet writes.
void make_real(json& value) {
  if (value.is_number()) value = value.get<double>();
}

void repair(json& run, const std::string& state) {
  if (!run.is_object()) return;
  run.erase("checksum");
  if (run.contains("checksums"))
    run["checksums"] = {{"model.onnx", hex64(hash64(model_bytes()))}, {"state.safetensors", hex64(hash64(state))}};
  for (const char* key : {"loss_sum", "best_metric"})
    if (run.contains(key)) make_real(run[key]);
  if (run.contains("history") && run["history"].is_array())
    for (json& epoch : run["history"]) {
      if (!epoch.is_object()) continue;
      for (const char* key : {"loss", "learning_rate", "seconds"})
        if (epoch.contains(key)) make_real(epoch[key]);
      if (epoch.contains("metrics") && epoch["metrics"].is_object())
        for (json& metric : epoch["metrics"]) make_real(metric);
    }
  run["checksum"] = hex64(hash64(run.dump(-1, ' ', false, json::error_handler_t::replace)));
}

std::string text_of(const json& value) {
  return value.dump(1, ' ', false, json::error_handler_t::replace);
}

void check_run(const std::string& run, const std::string& state, const ScratchFolder& folder) {
  parsed([&] { return checkpoint::parse_run_state(run, "run.json"); });  // as it is
  json repaired = json::parse(run, nullptr, false);
  repair(repaired, state);
  const std::string text = text_of(repaired);
  const auto run_state = parsed([&] { return checkpoint::parse_run_state(text, "run.json"); });
  const auto tensors = parsed([&] { return checkpoint::parse_safetensors(state, "state"); });
  if (!run_state) return;
  const std::string written = checkpoint::run_state_json(*run_state);
  if (checkpoint::run_state_json(checkpoint::parse_run_state(written, "again")) != written) std::abort();
  checkpoint::history_json(run_state->history);

  const std::string name = checkpoint::checkpoint_name(*run_state);
  std::filesystem::create_directory(folder.path() / name);
  folder.write(name + "/run.json", text);
  folder.write(name + "/state.safetensors", state);
  folder.write(name + "/model.onnx", model_bytes());
  const auto loaded = checkpoint::load_latest_checkpoint(folder.path());
  std::filesystem::remove_all(folder.path() / name);
  if (loaded.has_value() != tensors.has_value()) std::abort();
  if (loaded && checkpoint::run_state_json(loaded->run) != written) std::abort();
}

void check_best(const std::string& best, const ScratchFolder& folder) {
  json record = json::parse(best, nullptr, false);
  if (record.is_object() && record.contains("checksum")) record["checksum"] = hex64(hash64(model_bytes()));
  static const bool made = std::filesystem::create_directory(folder.path() / "best");
  if (!made) std::abort();
  folder.write("best/best.json", text_of(record));
  folder.write("best/model.onnx", model_bytes());
  parsed([&] { return checkpoint::load_best(folder.path(), 7).nodes().size(); });
}

}  // namespace
}  // namespace octet::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  set_log_level(LogLevel::kSilent);
  static const testing::ScratchFolder folder;
  const auto [run, state, best] = testing::pieces({reinterpret_cast<const char*>(data), size});
  testing::check_run(run, state, folder);
  if (!best.empty()) testing::check_best(best, folder);
  return 0;
}
