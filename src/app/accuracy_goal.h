// Post-training quantization that loses no more than it may (accuracy_search.h), on the images of an experiment or of a
// folder, judged by the engine: what is wanted, and what comes of it. training/accuracy_goal.h does it.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/accuracy_search.h"
#include "app/experiment_data.h"
#include "spec/experiment.h"

namespace octet::app {

struct AccuracyGoal {
  SearchBounds bounds;  // drop: points of the task's metric, or of agreement
  // Images to calibrate with, that many at a time (0: as the experiment says).
  std::function<DataStream(int64_t batch_size)> calibration;
  // Images that judge, in their order, for networks that take that many at a time. Labeled ones are measured by the
  // metric of the task, others by the share of those for which the network predicts what the float network does.
  std::function<DataStream(int64_t batch_size)> validation;
};

// As a table for people, one row for each step.
std::string search_text(const AccuracySearch& search);
// Of JSON: {"float": ..., "score": ..., "holds": ..., "steps": [{"what", "score", "ms", "bytes", "kept"}],
// "float_layers": [...]}
nlohmann::ordered_json search_json(const AccuracySearch& search);

}  // namespace octet::app
