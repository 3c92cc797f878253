// The experiment: everything that one spec file says, as typed, validated options. One file drives all stages:
//
//   float        trains the network with `train`                                          octet train --stage float
//   calibration  collects ranges of the float model with `quant.calibration`              octet calibrate
//   qat          fine-tunes the calibrated model with `finetune`, fake quantisation in    octet train --stage qat
//   control      the same fine-tune of the float model without quantisation: QAT's gain
//                is only what it has over this                                            octet train --stage control
//
// Every key, with default, range and unit, is declared once, in describe() (experiment_schema.cc); reading, help,
// docs/spec.md and provenance are generated from that. A key that is absent has the value it has here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/options.h"
#include "train/options/train_options.h"

namespace octet::spec {

enum class Task { kClassification };
enum class Stage { kFloat, kCalibration, kQat, kControl };

// ---------------------------------------------------------------------------------------------------------- model
struct ModelSpec {
  std::string arch = "resnet18";  // a name of `octet models`
  int64_t num_classes = 1000;
  std::vector<int64_t> input = {3, 224, 224};  // C, H, W
  std::string pretrained;                      // ONNX file with the starting weights, matched by name; empty: random
  bool load_graph = false;          // train the graph of `pretrained` as it is; arch, num_classes are then not used
  double dropout = -1.0;            // before the classifier; negative: that of the published network
  bool zero_init_residual = false;  // last batch norm of every residual branch starts at 0

  int64_t channels() const { return input.at(0); }
  int64_t height() const { return input.at(1); }
  int64_t width() const { return input.at(2); }
};

// ----------------------------------------------------------------------------------------------------------- data
enum class DataFormat { kIdx, kImageFolder, kCifar10, kCifar100 };
enum class Split { kAuto, kTrain, kTest };

struct DataSource {
  DataFormat format = DataFormat::kImageFolder;
  std::string path;    // folder of the images (idx: folder, or the image file itself)
  std::string labels;  // idx: the label file, where path is the image file; empty: found beside it
  // Which half of an idx or cifar folder; image_folder: the sub-folder of that name. After reading, kAuto is left only
  // for image_folder, where it means the folder itself.
  Split split = Split::kAuto;
  int64_t offset = 0;  // first image taken
  int64_t limit = 0;   // how many are taken from there; 0: all that follow
};

// Only training images are augmented.
struct AugmentSpec {
  int64_t crop_padding = 0;  // black pixels on each side, then a random crop of the input size
  bool flip = false;         // mirror left-right with probability 1/2
  bool random_resized_crop = false;
  std::vector<double> scale = {0.08, 1.0};          // share of the area, of random_resized_crop
  std::vector<double> ratio = {0.75, 1.333333333};  // width / height, of random_resized_crop
};

struct DataSpec {
  std::optional<DataSource> train, val, test;
  std::optional<DataSource> calibration;  // absent: the training images, without augmentation
  std::vector<double> mean = {0.0};       // per channel (or one for all), of pixels scaled to [0, 1]
  std::vector<double> std = {1.0};
  bool exif_orientation = false;  // turn image files as their EXIF data say
  int64_t resize = 0;  // shorter side before the (centre) crop; 0: straight to the input size
  AugmentSpec augment;
  int64_t threads = 0;  // 0: as many as CPUs
  int64_t seed = 1;

  // What calibration reads: `calibration`, else `train`. nullptr when the spec names neither.
  const DataSource* calibration_source() const { return calibration ? &*calibration : train ? &*train : nullptr; }
  // What `octet evaluate` reads: `test`, else `val`.
  const DataSource* evaluation_source() const { return test ? &*test : val ? &*val : nullptr; }
};

// ------------------------------------------------------------------------------------- evaluate, export, engine
struct EvaluateSpec {
  int64_t batch_size = 100;
  int64_t top_k = 5;  // reported beside top-1
};

struct ExportSpec {
  int64_t opset = 19;                  // 13, 19, 20 or 21
  std::string target = "onnxruntime";  // onnxruntime, openvino, tensorrt, or tensorrt:VERSION as in tensorrt:8.6
};

enum class EngineIsa { kAuto, kScalar, kGeneric, kAvx2, kAvxVnni, kAvx512Vnni, kAmxInt8 };

struct EngineSpec {
  EngineIsa isa = EngineIsa::kAuto;
  int64_t threads = 0;  // 0: as many as CPUs
  int64_t batch_size = 1;
};

struct ExperimentSpec {
  Task task = Task::kClassification;
  ModelSpec model;
  DataSpec data;
  train::TrainOptions train;
  train::TrainOptions finetune;  // as `train` with a tenth of the epochs, a hundredth of the rate and no warm-up, then its own keys
  quant::QuantOptions quant;
  EvaluateSpec evaluate;
  ExportSpec export_options;  // key `export`
  EngineSpec engine;

  // The schedule of a training stage: `train` for kFloat, `finetune` for kQat and kControl.
  const train::TrainOptions& schedule_for(Stage stage) const { return stage == Stage::kFloat ? train : finetune; }
};

// -------------------------------------------------------------------------------------------------------- reading
struct LoadOptions {
  std::vector<std::string> overrides;  // "train.epochs=3": applied to the file's text before it is read
  bool check_files = true;             // input paths must exist
};

// Reads and validates a spec file. UserError with exit code 2 for the first thing wrong: `FILE:LINE:COLUMN: ...`.
// Relative paths in it are relative to the working directory.
ExperimentSpec load_experiment(const std::string& path, const LoadOptions& options = {});
// The same from memory; `name` stands for the file in messages. Any bytes are survived.
ExperimentSpec parse_experiment(std::string_view text, const std::string& name, const LoadOptions& options = {});

// What is odd about data.mean and data.std, as a sentence; empty where nothing is. The commonest mistake is to give the
// values for pixels of 0 .. 255.
std::string doubtful_normalisation(const DataSpec& data);

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

// docs/spec.md.
std::string reference_markdown();
// The keys of one section ("train.optimizer"; empty: all) as text for a terminal. UserError for an unknown section.
std::string section_help(const std::string& path);

Stage parse_stage(const std::string& name);  // float, calibration, qat, control; UserError (exit 2) otherwise
const char* stage_name(Stage stage);

}  // namespace octet::spec
