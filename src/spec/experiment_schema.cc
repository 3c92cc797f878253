#include "spec/experiment_schema.h"

#include <algorithm>
#include <cmath>

namespace octet::spec {

OCTET_ENUM_NAMES(Task, {Task::kClassification, "classification"})
OCTET_ENUM_NAMES(Stage, {Stage::kFloat, "float"}, {Stage::kCalibration, "calibration"}, {Stage::kQat, "qat"},
                 {Stage::kControl, "control"})
OCTET_ENUM_NAMES(DataFormat, {DataFormat::kIdx, "idx"}, {DataFormat::kImageFolder, "image_folder"},
                 {DataFormat::kCifar10, "cifar10"}, {DataFormat::kCifar100, "cifar100"})
OCTET_ENUM_NAMES(Split, {Split::kAuto, "auto"}, {Split::kTrain, "train"}, {Split::kTest, "test"})
OCTET_ENUM_NAMES(EngineIsa, {EngineIsa::kAuto, "auto"}, {EngineIsa::kScalar, "scalar"},
                 {EngineIsa::kGeneric, "generic"}, {EngineIsa::kAvx2, "avx2"}, {EngineIsa::kAvxVnni, "avx_vnni"},
                 {EngineIsa::kAvx512Vnni, "avx512_vnni"}, {EngineIsa::kAmxInt8, "amx_int8"})

void describe(Section& s, ModelSpec& model) {
  s.field("arch", model.arch)
      .known_elsewhere_as({"backbone", "network", "name"})
      .help("Network of the zoo; `octet models` lists them.");
  s.field("num_classes", model.num_classes)
      .range(1, 1'000'000)
      .known_elsewhere_as({"classes", "n_classes"})
      .help("Outputs of the classifier; must fit the data.");
  s.field("input", model.input)
      .range(1, 16'384)
      .length(3, 3)
      .unit("channels, height, width")
      .known_elsewhere_as({"input_shape", "input_size", "input_image_size"})
      .help("Shape of one image as the network sees it.");
  s.field("pretrained", model.pretrained)
      .input_path()
      .known_elsewhere_as({"pretrained_model_file", "pretrained_model_path", "weights"})
      .help("ONNX file with the starting weights, matched by name and shape; empty: random weights.");
  s.field("load_graph", model.load_graph)
      .help(
          "Train the graph of `pretrained` as it is (any ONNX network, also a pruned one) instead of building `arch`.");
  s.field("dropout", model.dropout)
      .range(-1, 0.99)
      .known_elsewhere_as({"dropout_rate"})
      .help("Dropout before the classifier; negative: that of the published network.");
  s.field("zero_init_residual", model.zero_init_residual)
      .help("Let every residual branch start at zero (last batch norm's scale 0).");
}

void describe(Section& s, DataSource& source) {
  s.field("format", source.format)
      .required()
      .help(
          "idx (MNIST family, also .gz), image_folder (one folder of JPEG or PNG files a class), cifar10, cifar100 "
          "(binary version).");
  s.field("path", source.path)
      .required()
      .input_path()
      .known_elsewhere_as({"root", "dir", "directory", "image_directory_path"})
      .help("Folder of the images; idx: folder with the usual file names, or the image file.");
  s.field("labels", source.labels)
      .input_path()
      .help(
          "idx: label file, where `path` is an image file and the labels are not beside it. Classes of an image_folder "
          "are its sub-folders, sorted.");
  s.field("split", source.split)
      .known_elsewhere_as({"subset"})
      .help(
          "Half of an idx or cifar folder (auto: train for `train` and `calibration`, test for `val` and `test`); "
          "image_folder: sub-folder of that name (auto: none).");
  s.field("offset", source.offset)
      .range(0, 1e12)
      .unit("images")
      .help("First image taken, in the order of the file; with limit it splits one set in two.");
  s.field("limit", source.limit)
      .range(0, 1e12)
      .unit("images")
      .known_elsewhere_as({"count", "num_images"})
      .help("How many images are taken from there; 0: all that follow.");
}

void describe(Section& s, AugmentSpec& augment) {
  s.field("crop_padding", augment.crop_padding)
      .range(0, 256)
      .unit("pixels")
      .help("Pad with black on each side, then crop the input size at random.");
  s.field("flip", augment.flip)
      .known_elsewhere_as({"hflip", "horizontal_flip"})
      .help("Mirror left-right with probability 1/2.");
  s.field("random_resized_crop", augment.random_resized_crop)
      .help("Crop a random area and aspect ratio, resized to the input (ImageNet's usual augmentation).");
  s.field("scale", augment.scale)
      .above(0, 1)
      .length(2, 2)
      .unit("share of the area")
      .help("Smallest and largest area of random_resized_crop.");
  s.field("ratio", augment.ratio)
      .above(0, 100)
      .length(2, 2)
      .unit("width / height")
      .help("Narrowest and widest shape of random_resized_crop.");
}

void describe(Section& s, DataSpec& data) {
  s.section("train", data.train).help("Training images.");
  s.section("val", data.val)
      .same_keys_as("data.train")
      .known_elsewhere_as({"validation", "valid", "eval"})
      .help("Images evaluated during training; the best checkpoint is chosen by them.");
  s.section("test", data.test).same_keys_as("data.train").help("Images of `octet evaluate`; absent: `val`.");
  s.section("calibration", data.calibration)
      .same_keys_as("data.train")
      .help("Images that ranges are collected from; absent: `train`. Never use test images here.");
  s.field("mean", data.mean)
      .range(-1000, 1000)
      .length(1, 64)
      .unit("of pixels in [0, 1]")
      .help("Subtracted from every pixel; one value, or one for each channel.");
  s.field("std", data.std)
      .above(0, 1000)
      .length(1, 64)
      .unit("of pixels in [0, 1]")
      .help("Every pixel is divided by it after the mean is subtracted.");
  s.field("exif_orientation", data.exif_orientation)
      .known_elsewhere_as({"exif_transpose", "auto_orient"})
      .help("Turn JPEG, PNG and WebP files as the EXIF tag Orientation says; without it they are read as they are stored, as "
            "Pillow and torchvision read them.");
  s.field("resize", data.resize)
      .range(0, 16'384)
      .unit("pixels")
      .help("Length of the shorter side before the centre crop of evaluation; 0: resize straight to the input size.");
  s.section("augment", data.augment)
      .known_elsewhere_as({"augmentation", "augmentation_config", "transforms"})
      .help("Random changes of training images.");
  s.field("threads", data.threads)
      .range(0, 1024)
      .known_elsewhere_as({"workers", "num_workers", "n_workers"})
      .help("Threads that decode and augment; 0: as many as CPUs. Batches do not depend on it.");
  s.field("seed", data.seed).range(0, 9e15).help("Seed of order and augmentation.");
}

void describe(Section& s, EvaluateSpec& evaluate) {
  s.field("batch_size", evaluate.batch_size)
      .range(1, 65'536)
      .unit("images")
      .help("Changes speed and memory, not the result.");
  s.field("top_k", evaluate.top_k).range(1, 1'000'000).help("Accuracy of the k best classes is reported beside top-1.");
}

namespace {

// onnxruntime, openvino, tensorrt, or tensorrt:MAJOR.MINOR
bool is_target(const std::string& text) {
  if (text == "onnxruntime" || text == "openvino" || text == "tensorrt") return true;
  const std::string prefix = "tensorrt:";
  if (text.compare(0, prefix.size(), prefix) != 0) return false;
  const std::string version = text.substr(prefix.size());
  const size_t dot = version.find('.');
  const auto digits = [](const std::string& part) {
    return !part.empty() && part.size() <= 3 &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return dot != std::string::npos && digits(version.substr(0, dot)) && digits(version.substr(dot + 1));
}

}  // namespace

void describe(Section& s, ExportSpec& options) {
  s.field("opset", options.opset)
      .one_of({13, 19, 20, 21})
      .known_elsewhere_as({"target_opset"})
      .help("Of the QDQ ONNX file; 13 for old TensorRT versions.");
  s.field("target", options.target)
      .check("onnxruntime, openvino, tensorrt or tensorrt:VERSION as in tensorrt:8.6", is_target)
      .help("Runtime whose rules the file follows.");
}

void describe(Section& s, EngineSpec& engine) {
  s.field("isa", engine.isa).help("Instruction set to compile for; auto: the best of this machine.");
  s.field("threads", engine.threads).range(0, 1024).help("0: as many as CPUs. Results do not depend on it.");
  s.field("batch_size", engine.batch_size)
      .range(1, 65'536)
      .unit("images")
      .help("Largest batch that memory is planned for.");
}

namespace {

// Ten per cent of the epochs at a hundredth of the rate is the usual length of a quantisation-aware fine-tune.
train::TrainOptions finetune_defaults(const train::TrainOptions& train) {
  train::TrainOptions finetune = train;
  finetune.epochs = std::max<int64_t>(1, std::llround(static_cast<double>(train.epochs) / 10.0));
  finetune.optimizer.lr = train.optimizer.lr / 100.0;
  finetune.schedule.min_lr = train.schedule.min_lr / 100.0;
  finetune.schedule.warmup = 0.0;
  return finetune;
}

}  // namespace

void describe(Section& s, ExperimentSpec& spec) {
  s.field("task", spec.task).help("What the network is for.");
  s.section("model", spec.model).known_elsewhere_as({"model_config"}).help("The network.");
  s.section("data", spec.data)
      .known_elsewhere_as({"dataset", "dataset_config"})
      .help("Images and what is done to them.");
  s.section("train", spec.train)
      .known_elsewhere_as({"training_config", "train_config", "training"})
      .help("Float training (stage float).");
  s.section("finetune", spec.finetune)
      .same_keys_as("train")
      .starting_from("`train`, with a tenth of the epochs, a hundredth of lr and min_lr, and no warm-up",
                     [&spec] { spec.finetune = finetune_defaults(spec.train); })
      .known_elsewhere_as({"qat", "fine_tune", "retrain"})
      .help("Quantisation-aware fine-tune of the calibrated model (stage qat), and the same in float (stage control).");
  s.section("quant", spec.quant)
      .known_elsewhere_as({"quantization", "quantize", "qat_config"})
      .help("Calibration and quantisation.");
  s.section("evaluate", spec.evaluate)
      .known_elsewhere_as({"eval_config", "evaluation_config", "evaluation"})
      .help("Accuracy.");
  s.section("export", spec.export_options).help("QDQ ONNX files.");
  s.section("engine", spec.engine).help("The INT8 engine of `octet compile`, `infer` and `bench`.");
}

}  // namespace octet::spec
