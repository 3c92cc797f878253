#include "spec/experiment_schema.h"

#include <algorithm>

namespace octet::spec {

OCTET_ENUM_NAMES(Stage, {Stage::kFloat, "float"}, {Stage::kCalibration, "calibration"}, {Stage::kQat, "qat"},
                 {Stage::kControl, "control"})

void describe(Section& s, EvaluateSpec& evaluate) {
  s.field("batch_size", evaluate.batch_size)
      .range(1, 65'536)
      .unit("images")
      .help("Changes speed and memory, not the result.");
}

void describe(Section& s, InferSpec& infer) {
  s.field("draw", infer.draw).help("Pictures of the images with their objects, in images_annotated/.");
  s.field("kitti", infer.kitti).help("KITTI's label files with scores, in labels/.");
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
  std::vector<std::pair<std::optional<Isa>, std::string>> names = {{std::nullopt, "auto"}};
  for (const Isa isa : {Isa::kScalar, Isa::kGeneric, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512Vnni, Isa::kAmxInt8})
    names.emplace_back(isa, isa_name(isa));
  s.choice("isa", engine.isa, names).help("Instruction set to compile for; auto: the best of this machine.");
  s.field("threads", engine.threads).range(0, 1024).help("0: as many as CPUs. Results do not depend on it.");
  s.field("batch_size", engine.batch_size)
      .range(1, 65'536)
      .unit("images")
      .help("Largest batch that memory is planned for.");
}

void describe(Section& s, ExperimentSpec& spec) {
  tasks::describe(s, spec.task);
  s.field("recipe", spec.recipe)
      .written_when([] { return false; })  // the keys that it sets are
      .help(
          "Settings of quantization-aware training that go together: defaults of `quant` and `finetune`, over which "
          "what these say wins. int8: for float networks that have converged. efficientnet: for Swish, gates and "
          "depthwise convolutions, taught for few epochs: batch norms train on (qat_mode: with_bn), zero points "
          "(activations.asymmetric), 0.3 of the epochs at 0.3 of the rate. w4a4: four bits, learned scales (LSQ), half "
          "of the epochs.");
  s.section("model", spec.model).known_elsewhere_as({"model_config"}).help("The network.");
  s.section("data", spec.data)
      .known_elsewhere_as({"dataset", "dataset_config"})
      .help("Images and what is done to them.");
  s.section("train", spec.train)
      .known_elsewhere_as({"training_config", "train_config", "training"})
      .help("Float training (stage float).");
  s.section("finetune", spec.finetune)
      .same_keys_as("train")
      .starting_from(
          "`train`, with a tenth of the epochs, a hundredth of lr and min_lr (or as `recipe` says), and no "
          "warm-up",
          [&spec] { spec.finetune = finetune_of(spec.recipe, spec.train); })
      .known_elsewhere_as({"qat", "fine_tune", "retrain"})
      .help("Quantization-aware fine-tune of the calibrated model (stage qat), and the same in float (stage control).");
  s.section("quant", spec.quant)
      .starting_from("`recipe`", [&spec] { spec.quant = quantization_of(spec.recipe); })
      .known_elsewhere_as({"quantization", "quantize", "qat_config"})
      .help("Calibration and quantization.");
  s.section("evaluate", spec.evaluate)
      .known_elsewhere_as({"eval_config", "evaluation_config", "evaluation"})
      .help("Accuracy.");
  s.section("infer", spec.infer)
      .known_elsewhere_as({"inference", "inferencer_config"})
      .help("What `octet infer -r RESULTS` writes for a detector.");
  s.section("export", spec.export_options).help("QDQ ONNX files.");
  s.section("engine", spec.engine).help("The INT8 engine of `octet compile`, `infer` and `bench`.");
  for (const auto& [key, values] :
       {std::pair{"data.mean", &spec.data.transform.mean}, std::pair{"data.std", &spec.data.transform.std}})
    s.rule(key, [&spec, values = values]() -> std::string {
      const auto channels = static_cast<size_t>(spec.model.channels());
      if (values->size() == 1 || values->size() == channels) return "";
      return str("has ", values->size(), " values, but model.input has ", channels, " channels; give 1 or ", channels);
    });
  s.rule("data.color_order", [&spec]() -> std::string {
    if (spec.data.transform.order == data::ChannelOrder::kRgb || spec.model.channels() == 3) return "";
    return str("is bgr, but model.input has ", spec.model.channels(), " channels; it is of 3");
  });
}

}  // namespace octet::spec
