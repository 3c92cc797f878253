#include "checkpoint/run_state.h"

#include <charconv>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/json_number.h"

namespace octet::checkpoint {
namespace {

using nlohmann::json;

constexpr int64_t kFormat = 3;

json to_json(const std::vector<EpochRecord>& history) {
  json out = json::array();
  for (const EpochRecord& e : history)
    out.push_back({{"epoch", e.epoch},
                   {"loss", e.loss},
                   {"learning_rate", e.learning_rate},
                   {"seconds", e.seconds},
                   {"metrics", e.metrics}});
  return out;
}

json to_json(const RunState& run) {
  json checksums = json::object();
  for (const auto& [name, hash] : run.checksums) checksums[name] = hex64(hash);
  return {{"format", kFormat},
          {"epochs_done", run.epochs_done},
          {"batches_done", run.batches_done},
          {"ranks", run.ranks},
          {"skipped", run.skipped},
          {"back_off", run.back_off},
          {"loss_sum", run.loss_sum},
          {"best_metric", run.best_metric},
          {"best_epoch", run.best_epoch},
          {"fingerprint", run.fingerprint},
          {"history", to_json(run.history)},
          {"checksums", checksums}};
}

std::string self_checksum(const json& j) {
  return hex64(hash64(j.dump()));
}

uint64_t parse_hash(const std::string& text, const std::string& what) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || text != hex64(value)) fail(what, " is no checksum");
  return value;
}

RunState from_json(const json& j) {
  whole_number(j.at("format"), kFormat, kFormat, "'format'");
  RunState run;
  run.epochs_done = whole_number(j.at("epochs_done"), 0, kMaxEpochs, "'epochs_done'");
  run.batches_done = whole_number(j.at("batches_done"), 0, kMaxBatches, "'batches_done'");
  run.ranks = whole_number(j.at("ranks"), 1, kMaxRanks, "'ranks'");
  run.skipped = whole_number(j.at("skipped"), 0, run.batches_done, "'skipped'");
  run.back_off = finite_number(j.at("back_off"), "'back_off'");
  run.loss_sum = finite_number(j.at("loss_sum"), "'loss_sum'");
  run.best_metric = finite_number(j.at("best_metric"), "'best_metric'");
  run.best_epoch = whole_number(j.at("best_epoch"), 0, run.epochs_done, "'best_epoch'");
  run.fingerprint = j.at("fingerprint").get<std::string>();
  int64_t previous = 0;
  if (!j.at("history").is_array()) fail("'history' is not a list");
  for (const json& e : j.at("history")) {
    EpochRecord record;
    record.epoch = whole_number(e.at("epoch"), previous + 1, run.epochs_done, "'epoch' in 'history'");
    record.loss = finite_number(e.at("loss"), "'loss' in 'history'");
    record.learning_rate = finite_number(e.at("learning_rate"), "'learning_rate' in 'history'");
    record.seconds = finite_number(e.at("seconds"), "'seconds' in 'history'");
    if (!e.at("metrics").is_object()) fail("'metrics' in 'history' is not a map");
    for (const auto& [name, value] : e.at("metrics").items())
      record.metrics[name] = number_or_nan(value, "a metric in 'history'");
    previous = record.epoch;
    run.history.push_back(std::move(record));
  }
  if (!j.at("checksums").is_object()) fail("'checksums' is not a map");
  for (const auto& [name, hash] : j.at("checksums").items())
    run.checksums[name] = parse_hash(hash.get<std::string>(), "an entry of 'checksums'");
  if (j.at("checksum").get<std::string>() != self_checksum(to_json(run))) fail("its checksum does not fit its content");
  return run;
}

}  // namespace

std::string run_state_json(const RunState& run) {
  json j = to_json(run);
  j["checksum"] = self_checksum(j);
  return j.dump(1) + "\n";
}

RunState parse_run_state(std::string_view text, const std::string& origin) {
  const json j = json::parse(text, nullptr, false);
  if (!j.is_object()) fail(origin, ": is damaged: it holds no JSON object");
  try {
    return from_json(j);
  } catch (const UserError& e) {
    fail(origin, ": is damaged: ", e.what());
  } catch (const json::exception& e) {
    fail(origin, ": is damaged: ", e.what());
  }
}

std::string history_json(const std::vector<EpochRecord>& history) {
  return to_json(history).dump(1) + "\n";
}

}  // namespace octet::checkpoint
