#include "app/training_record.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kFile = "training.json";
constexpr int kFormat = 1;

spec::ExperimentSpec with_epochs_of(spec::ExperimentSpec spec, const spec::ExperimentSpec& other) {
  spec.train.epochs = other.train.epochs;
  spec.finetune.epochs = other.finetune.epochs;
  return spec;
}

// read_file() refuses what the command is going to write; this only looks whether it has been written.
uint64_t content_hash(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return hash64(std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()));
}

uint64_t parse_hex(const std::string& text) {
  return std::stoull(text, nullptr, 16);
}

}  // namespace

std::optional<TrainingRecord> read_training_record(const fs::path& results) {
  const fs::path path = results / kFile;
  if (!fs::exists(path)) return std::nullopt;
  try {
    const ordered_json j = ordered_json::parse(read_file(path));
    if (j.at("format") != kFormat) fail("its format is not ", kFormat);
    TrainingRecord record;
    record.stage = spec::parse_stage(j.at("stage").get<std::string>());
    record.model = j.at("model").get<std::string>();
    record.model_hash = parse_hex(j.at("model_hash").get<std::string>());
    record.teacher_hash = parse_hex(j.value("teacher_hash", hex64(0)));
    record.data_hash = parse_hex(j.at("data_hash").get<std::string>());
    record.workers = j.value("workers", int64_t{1});
    record.threads = j.at("threads").get<int64_t>();
    record.precision = j.at("precision").get<std::string>();
    record.command = j.value("command", "");
    record.images = j.value("images", int64_t{0});
    for (const auto& [name, hash] : j.at("outputs").items()) record.outputs[name] = parse_hex(hash.get<std::string>());
    record.spec = spec::parse_experiment(j.at("spec").get<std::string>(), path.string(), {.check_files = false});
    return record;
  } catch (const std::exception& e) {
    log_warning(path.string(), ": cannot be read: ", e.what());
    return std::nullopt;
  }
}

void write_training_record(const fs::path& results, const TrainingRecord& record) {
  ordered_json outputs = ordered_json::object();
  for (const auto& [name, hash] : record.outputs) outputs[name] = hex64(hash);
  const ordered_json j = {{"format", kFormat},
                          {"stage", spec::stage_name(record.stage)},
                          {"model", record.model},
                          {"model_hash", hex64(record.model_hash)},
                          {"teacher_hash", hex64(record.teacher_hash)},
                          {"data_hash", hex64(record.data_hash)},
                          {"workers", record.workers},
                          {"threads", record.threads},
                          {"precision", record.precision},
                          {"outputs", outputs},
                          {"command", record.command},
                          {"images", record.images},
                          {"spec", spec::to_yaml(record.spec)}};
  write_file_atomically(results / kFile, j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::vector<std::string> differences(const TrainingRecord& before, const TrainingRecord& after) {
  const auto change = [](const auto& what, const auto& was, const auto& is) {
    return str(what, ": ", was, " -> ", is);
  };
  if (before.stage != after.stage)
    return {change("--stage", spec::stage_name(before.stage), spec::stage_name(after.stage))};
  std::vector<std::string> out;
  for (const spec::KeyDifference& d :
       spec::differences(before.spec, with_epochs_of(after.spec, before.spec), after.stage))
    out.push_back(change(d.key, d.before, d.after));
  const std::string schedule = after.stage == spec::Stage::kFloat ? "train" : "finetune";
  if (before.threads != after.threads && before.workers == after.workers)
    out.push_back(change(schedule + ".threads", before.threads, after.threads));
  if (before.precision != after.precision && out.empty())
    out.push_back(change(schedule + ".precision on this machine", before.precision, after.precision));
  if (before.model_hash != after.model_hash)
    out.push_back(before.model == after.model ? str("the content of ", after.model)
                                              : change("-m", before.model, after.model));
  if (before.teacher_hash != after.teacher_hash && out.empty())
    out.push_back(str("the content of the teacher, ", after.spec.schedule_for(after.stage).distill.teacher));
  if (before.data_hash != after.data_hash && out.empty())
    out.push_back(str("the images of data.train (", data::paths_of(after.spec.data.train), ")"));
  return out;
}

int64_t epochs(const TrainingRecord& record) {
  return record.spec.schedule_for(record.stage).epochs;
}

const char* epochs_key(const TrainingRecord& record) {
  return record.stage == spec::Stage::kFloat ? "train.epochs" : "finetune.epochs";
}

std::string fingerprint(const TrainingRecord& record) {
  return str(spec::stage_name(record.stage), "-",
             spec::spec_hash(with_epochs_of(record.spec, spec::ExperimentSpec()), record.stage), "-",
             hex64(record.model_hash), "-", hex64(record.teacher_hash), "-", hex64(record.data_hash), "-",
             record.precision);
}

bool is_finished(const fs::path& output, const TrainingRecord& record) {
  const auto known = record.outputs.find(output.filename().string());
  return known != record.outputs.end() && fs::exists(output) && content_hash(output) == known->second;
}

}  // namespace octet::app
