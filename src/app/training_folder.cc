#include "app/training_folder.h"

#include <optional>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"

namespace octet::app {

namespace fs = std::filesystem;

bool holds_checkpoints(const fs::path& results) {
  std::error_code error;
  return fs::is_directory(results / "checkpoints", error) && !fs::is_empty(results / "checkpoints", error);
}

void remove_training(const fs::path& results, const std::string& name) {
  for (const std::string& entry :
       {std::string("checkpoints"), std::string("events"), std::string("status.jsonl"), std::string("history.json"),
        std::string("training.json"), std::string(kCalibrated), name + ".onnx", name + ".best.onnx"})
    remove_output(results / entry);
}

void require_outside_training(const fs::path& results, const std::string& model) {
  std::error_code ignored;
  const std::string removed = fs::weakly_canonical(results / "checkpoints", ignored).string() + "/";
  if (!model.empty() && fs::weakly_canonical(model, ignored).string().starts_with(removed))
    fail_usage(model, ": --force would remove it before the run can start from it; copy it to another folder first");
}

void take_up_training(TrainingRecord& wanted, const fs::path& results) {
  const std::optional<TrainingRecord> previous = read_training_record(results);
  constexpr const char* kAdvice = "; name another results folder, or give --force to start anew";
  if (!previous)
    fail_usage(results.string(), ": holds a training without its training.json, so nothing tells what it was made with",
               kAdvice);
  if (wanted.spec.schedule_for(wanted.stage).threads == 0 && wanted.workers == previous->workers)
    wanted.threads = previous->threads;
  std::vector<std::string> different = differences(*previous, wanted);
  const int64_t before = epochs(*previous), after = epochs(wanted);
  const bool same_stage = previous->stage == wanted.stage;
  if (same_stage && (after < before || (after > before && !different.empty())))
    different.insert(different.begin(), str(epochs_key(wanted), ": ", before, " -> ", after));
  if (!different.empty()) {
    std::string list;
    for (const std::string& each : different) list += (list.empty() ? "" : ", ") + each;
    fail_usage(results.string(), ": holds a training that differs from this command in ", list, kAdvice);
  }
  if (after == before) {
    wanted.outputs = previous->outputs;
  } else if (holds_checkpoints(results)) {
    log_info("going on to ", after, " epochs where ", before, " were asked for; the schedule from here on is that of ",
             after, ", so the model is not that of ", after, " epochs from the start");
  } else {
    fail_usage(results.string(), ": was trained for ", before, " epochs and has no checkpoint from which to go on to ",
               after, kAdvice);
  }
}

}  // namespace octet::app
