#include "tasks/detector/task.h"

#include "base/error.h"
#include "tasks/detector/decode.h"
#include "tasks/image_graph.h"

namespace octet::tasks::detector {
namespace {

Decoder decoder_of(const Options& options, const Signature& network) {
  const data::NetworkInput input = image_input(network);
  return {options, shapes_of(network), input.height, input.width};
}

Detections detect_all(const Options& options, const Outputs& outputs, const data::Batch& batch) {
  const Decoder decoder(options, shapes_of(outputs), batch.height, batch.width);
  Detections found{.images = {}, .classes = decoder.classes()};
  for (int64_t i = 0; i < batch.size; ++i) found.images.push_back(decoder.detect(outputs, i));
  return found;
}

}  // namespace

std::unique_ptr<tasks::Task> make_task() {
  return std::make_unique<Task>(Options{});
}

void Task::name_classes(const std::vector<std::string>& names) {
  options_.metrics.matching.resolve(names, "detector.evaluation.target_class_config");
  if (options_.labels.value >= 0 && options_.scores.classes == 0) options_.scores.classes = std::ssize(names);
}

bool Task::recognize(const Signature& network) {
  const auto shape_of = [](const Port& port) { return port.type.shape ? *port.type.shape : ir::Shape(); };
  const auto read = [&](const Port* boxes, const Port* scores, const Port* labels) {
    if (!boxes || !scores || !labels) return false;
    const size_t rank = shape_of(*boxes).size();
    if (rank < 2 || rank > 3 || shape_of(*scores).size() != rank - 1 || shape_of(*labels).size() != rank - 1)
      return false;
    options_ = {.boxes = {.outputs = {boxes->name}},
                .scores = {.outputs = {scores->name}},
                .labels = {.outputs = {labels->name}, .value = 0},
                .nms = {.score_threshold = 0, .iou_threshold = 1, .candidates = 0, .most = 0}};
    return true;
  };
  const auto named = [&](const std::string& name) -> const Port* {
    for (const Port& port : network.outputs)
      if (port.name == name) return &port;
    return nullptr;
  };
  if (read(named("detection_boxes"), named("detection_scores"), named("detection_classes"))) {
    options_.boxes.code = BoxCode::kCornersYx;
    options_.boxes.unit = Unit::kImage;
    return true;
  }
  if (network.outputs.size() != 3) return false;
  const Port *boxes = nullptr, *scores = nullptr, *labels = nullptr;
  for (const Port& port : network.outputs) {
    const ir::Shape shape = shape_of(port);
    const bool is_float = port.type.data_type == ir::DataType::kFloat32;
    if (is_float && shape.size() == 2 && shape[1] == 4) boxes = &port;
    if (is_float && shape.size() == 1) scores = &port;
    if (port.type.data_type == ir::DataType::kInt64 && shape.size() == 1) labels = &port;
  }
  return read(boxes, scores, labels);
}

ir::Graph Task::build(const models::ModelOptions&) const {
  fail_usage(
      "the task detector builds no networks, it reads those of others; give a file with -m, or with model.pretrained "
      "and "
      "model.load_graph: true");
}

void Task::check(const Signature& network, int64_t classes) const {
  const int64_t own = this->classes(network);
  if (classes > 0 && own >= 0 && own != classes)
    fail_usage("the network has scores of ", own, " classes, the spec says model.num_classes: ", classes);
}

int64_t Task::classes(const Signature& network) const {
  return decoder_of(options_, network).classes();
}

ir::Graph Task::executed_graph(const ir::Graph& network) const {
  return image_graph(network);
}

std::vector<Prediction> Task::decode(const Outputs& outputs, const data::Batch& batch) const {
  std::vector<Prediction> out;
  for (Objects& objects : detect_all(options_, outputs, batch).images) out.emplace_back(std::move(objects));
  return out;
}

NvinferReading Task::nvinfer(const Signature& network) const {
  const NmsSettings& nms = options_.nms;
  NvinferReading out = tasks::Task::nvinfer(network);
  std::string clustering = nms.iou_threshold < 1 ? str("cluster-mode=2, nms-iou-threshold=", nms.iou_threshold)
                                                 : std::string("cluster-mode=4");
  if (nms.most > 0) clustering += str(", topk=", nms.most);
  out.remarks = {str(
      "of detectors nvinfer reads DetectNet_v2's grid alone: these outputs are handed on as tensors, and the program "
      "behind it decodes them as the experiment's section detector says; a parser of your own (network-type=0, "
      "parse-bbox-func-name, custom-lib-path) would go with ",
      clustering, ", pre-cluster-threshold=", nms.score_threshold)};
  return out;
}

std::unique_ptr<Evaluator> Task::evaluator() const {
  const auto detect = [options = options_](const Outputs& outputs, const data::Batch& batch) {
    return detect_all(options, outputs, batch);
  };
  return object_evaluator(detect, options_.metrics);
}

}  // namespace octet::tasks::detector
