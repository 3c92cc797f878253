#include "checkpoint/run_state.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octet::checkpoint {
namespace {

using nlohmann::json;

json to_json(const std::vector<EpochRecord>& history) {
  json out = json::array();
  for (const EpochRecord& e : history)
    out.push_back({{"epoch", e.epoch}, {"loss", e.loss}, {"learning_rate", e.learning_rate}, {"seconds", e.seconds},
                   {"metrics", e.metrics}});
  return out;
}

RunState from_json(const json& j) {
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

}  // namespace

std::string run_state_json(const RunState& run) {
  const json j = {{"format", 1}, {"epochs_done", run.epochs_done}, {"batches_done", run.batches_done},
                  {"loss_sum", run.loss_sum}, {"best_metric", run.best_metric}, {"best_epoch", run.best_epoch},
                  {"fingerprint", run.fingerprint}, {"history", to_json(run.history)}};
  return j.dump(1) + "\n";
}

RunState parse_run_state(std::string_view text, const std::string& origin) {
  try {
    return from_json(json::parse(text));
  } catch (const json::exception& e) {
    fail(origin, ": is damaged: ", e.what());
  }
}

std::string history_json(const std::vector<EpochRecord>& history) { return to_json(history).dump(1) + "\n"; }

}  // namespace octet::checkpoint
