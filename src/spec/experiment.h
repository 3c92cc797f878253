// The experiment: everything that one spec file says, as typed, validated options. One file drives all stages:
//
//   float        trains the network with `train`                                          octet train --stage float
//   calibration  collects ranges of the float model with `quant.calibration`              octet calibrate
//   qat          fine-tunes the calibrated model with `finetune`, fake quantization in    octet train --stage qat
//   control      the same fine-tune of the float model without quantization: QAT's gain
//                is only what it has over this                                            octet train --stage control
//
// Every key, with default, range and unit, is declared once, by the layer whose options it belongs to (describe(), see
// schema/schema.h); here they are put together. Reading, help, docs/spec.md and provenance are generated from that. A
// key that is absent has the value it has in its struct.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_features.h"
#include "data/data_options.h"
#include "models/zoo.h"
#include "quant/options.h"
#include "spec/recipe.h"
#include "tasks/registry.h"
#include "train/options/train_options.h"

namespace octet::spec {

enum class Stage { kFloat, kCalibration, kQat, kControl };

// ------------------------------------------------------------------------------------- evaluate, infer, export, engine
struct EvaluateSpec {
  int64_t batch_size = 100;
};

// What `octet infer -r` writes for a detector.
struct InferSpec {
  bool draw = true;   // pictures with boxes
  bool kitti = true;  // KITTI's label files
};

struct ExportSpec {
  int64_t opset = 19;                  // 13, 19, 20 or 21
  std::string target = "onnxruntime";  // onnxruntime, openvino, tensorrt, or tensorrt:VERSION as in tensorrt:8.6
};

struct EngineSpec {
  std::optional<Isa> isa;  // none: the best of this machine
  int64_t threads = 0;     // 0: as many as CPUs
  int64_t batch_size = 1;
};

struct ExperimentSpec {
  tasks::TaskChoice task;
  Recipe recipe = Recipe::kInt8;  // where `quant` and `finetune` begin; read only
  models::ModelOptions model;
  data::DataOptions data;
  train::TrainOptions train;
  train::TrainOptions
      finetune;  // as `train` with a tenth of the epochs, a hundredth of the rate and no warm-up, then its own keys
  quant::QuantOptions quant;
  EvaluateSpec evaluate;
  InferSpec infer;
  ExportSpec export_options;  // key `export`
  EngineSpec engine;

  // The schedule of a training stage: `train` for kFloat, `finetune` for kQat and kControl.
  const train::TrainOptions& schedule_for(Stage stage) const { return stage == Stage::kFloat ? train : finetune; }
  // `quant` with what the task decides where the user does not.
  quant::QuantOptions quantization() const;
};

// -------------------------------------------------------------------------------------------------------- reading
struct LoadOptions {
  std::vector<std::string> overrides;  // "train.epochs=3": applied to the file's text before it is read
  bool check_files = true;             // input paths must exist, and keys that say `auto` are found from them
  std::string default_task;            // where the file names none; empty: the first of tasks.def
  bool quiet = false;                  // do not name the fields of TAO that Octet has no use for
};

// Reads and validates a spec file: YAML, or protobuf text as NVIDIA TAO has it (spec/tao.h). UserError with exit code 2
// for the first thing wrong: `FILE:LINE:COLUMN: ...`. Relative paths in it are relative to the working directory.
ExperimentSpec load_experiment(const std::string& path, const LoadOptions& options = {});
// The same from memory; `name` stands for the file in messages. Any bytes are survived.
ExperimentSpec parse_experiment(std::string_view text, const std::string& name, const LoadOptions& options = {});

// The whole experiment as YAML, every key resolved; parse_experiment() of it gives the same experiment.
std::string to_yaml(const ExperimentSpec& spec);
// 16 hexadecimal digits over everything that can change results (not threads, intervals, engine).
std::string spec_hash(const ExperimentSpec& spec);
// Only over what this stage depends on: a change in `quant` leaves the hash of stage float as it is.
std::string spec_hash(const ExperimentSpec& spec, Stage stage);

// The experiment with everything that cannot change the results of this stage at its default.
ExperimentSpec relevant_to(const ExperimentSpec& spec, Stage stage);
// What differs of that, in the order of the file; "absent" stands for a section that is not there.
struct KeyDifference {
  std::string key, before, after;  // "train.optimizer.lr", "0.1", "0.01"
};
std::vector<KeyDifference> differences(const ExperimentSpec& before, const ExperimentSpec& after, Stage stage);
// What differs of all keys.
std::vector<KeyDifference> differences(const ExperimentSpec& before, const ExperimentSpec& after);

// docs/spec.md.
std::string reference_markdown();
// The keys of one section ("train.optimizer"; empty: all) as text for a terminal. UserError for an unknown section.
std::string section_help(const std::string& path);

Stage parse_stage(const std::string& name);  // float, calibration, qat, control; UserError (exit 2) otherwise
const char* stage_name(Stage stage);

}  // namespace octet::spec
