#include "tasks/detectnet_v2/tao_inference.h"

#include "base/error.h"
#include "tao/tree.h"
#include "tasks/detectnet_v2/tao_classes.h"
#include "tasks/detectnet_v2/tao_specification.h"

namespace octet::tasks::detectnet_v2 {
namespace {

using schema::Node;
using tao::Count;
using tao::Message;
using tao::Tree;
using tao::UnusedField;

constexpr const char* kModel = "the model is the one that the command line names (-m)";
constexpr const char* kEngine = "engines are made by `octet export` and `octet compile` and named by -m";

// ----------------------------------------------------------------------------------------------------
// inferencer_config

void count_classes(const Node& message, Tree& experiment, std::vector<UnusedField>&) {
  int64_t classes = 0;
  for (const schema::Entry& entry : message.entries) classes += entry.key == "target_classes" ? 1 : 0;
  if (classes > 0)
    experiment.set(tao::parse_path("model.num_classes"), tao::scalar(std::to_string(classes), false, message.location),
                   message.location);
}

Message tensorrt_config() {
  Message calibrator, m;
  calibrator.text("calibration_cache").means("Ranges of the tensors.");
  calibrator.integer("n_batches").range(0).means("Batches that calibrate.");
  calibrator.text("calibration_tensorfile").means("Images that calibrate, as TAO writes them.");
  m.choice("parser", {{"ETLT", ""}, {"UFF", ""}, {"CAFFE", ""}, {"ONNX", ""}}).means("Format of the model.");
  m.text("caffemodel").means("Model of Caffe.");
  m.text("prototxt").means("Its network.");
  m.text("uff_model").means("Model as UFF.");
  m.text("etlt_model").means("Model as TAO exported it.");
  m.choice("backend_data_type", {{"FP32", ""}, {"FP16", ""}, {"INT8", ""}}).means("Type of the engine.");
  m.message("calibrator_config", std::move(calibrator)).means("What an INT8 engine is made with.");
  m.flag("save_engine").means("Keep the engine.");
  m.text("trt_engine").means("File of the engine.");
  return m;
}

Message inferencer_config() {
  Message network, m;
  network.text("model").means("Model as TAO trained it.");
  m.text("target_classes", Count::kList)
      .key("data.target_classes")
      .means("Names of the classes in the order of the network's outputs.");
  m.integer("image_width").range(1, 16'384).key("model.input[2]").means("Width of the network's input in pixels.");
  m.integer("image_height").range(1, 16'384).key("model.input[1]").means("Height of the network's input in pixels.");
  m.integer("image_channels")
      .range(1, 64)
      .otherwise("3")
      .key("model.input[0]")
      .means("Channels of the network's input.");
  m.integer("batch_size").range(1, 65'536).key("evaluate.batch_size").means("Images that are computed at a time.");
  m.integer("gpu_index").range(0).unused("images are computed on the CPU", "0").means("Which GPU computes.");
  m.message("tlt_config", network).one_of("model_config_type").unused(kModel).means("A trained model.");
  m.message("tao_config", std::move(network)).one_of("model_config_type").unused(kModel).means("A trained model.");
  m.message("tensorrt_config", tensorrt_config())
      .one_of("model_config_type")
      .unused(kEngine)
      .means("An engine, and how it is made.");
  m.hook({.read = count_classes});
  return m;
}

// --------------------------------------------------------------------------------------------------
// bbox_handler_config

// Detections are called what their class is called.
void check_output_name(const Node& message, Tree&, std::vector<UnusedField>& unused) {
  for (const schema::Entry& entry : message.entries) {
    if (entry.key != "classwise_bbox_handler_config") continue;
    const Node *name = entry.value.find("key"), *value = entry.value.find("value");
    const Node* output = value ? value->find("output_map") : nullptr;
    if (output && name && output->text != name->text)
      unused.push_back({output->location,
                        str("bbox_handler_config.classwise_bbox_handler_config{", name->text, "}.output_map"),
                        "detections are called what their class is called"});
  }
}

Message bbox_handler_config() {
  constexpr const char* kColors = "each class has one of seven colors that most people tell apart";
  Message color, each, m;
  for (const char* const channel : {"R", "G", "B"}) color.integer(channel).range(0, 255).means("Of the color.");
  each.text("confidence_model")
      .spelled({{"aggregate_cov", "aggregate_cov"}, {"mean_cov", "mean_cov"}})
      .key(".confidence_model")
      .means("Score of a cluster: the sum of its coverages, or their mean.");
  each.text("output_map").hooked().means("Name of the class in the output.");
  each.message("bbox_color", std::move(color)).unused(kColors).means("Color of the boxes.");
  each.message("clustering_config", clustering_config()).means("From proposals to detections.");
  m.flag("kitti_dump").otherwise("false").key("infer.kitti").means("Write KITTI's label files.");
  m.flag("disable_overlay").hooked().key("infer.draw").means("Draw no pictures.");
  m.integer("overlay_linewidth")
      .range(0)
      .unused("frames are as wide as the picture asks for")
      .means("Width of the frames in pixels.");
  m.message("classwise_bbox_handler_config", std::move(each), Count::kMap)
      .key("detectnet_v2.postprocessing.target_class_config.*")
      .default_entry("default", "detectnet_v2.postprocessing")
      .means("By class; `default` is for those that have no entry.");
  m.hook({.read = [](const Node& message, Tree& experiment, std::vector<UnusedField>& unused) {
    if (const Node* disabled = message.find("disable_overlay")) {
      const bool draw =
          disabled->text != "true" && disabled->text != "True" && disabled->text != "t" && disabled->text != "1";
      experiment.set(tao::parse_path("infer.draw"), tao::scalar(draw ? "true" : "false", false, disabled->location),
                     disabled->location);
    }
    check_output_name(message, experiment, unused);
  }});
  return m;
}

Message inference_specification() {
  Message m;
  m.message("inferencer_config", inferencer_config()).means("The network and its input.");
  m.message("bbox_handler_config", bbox_handler_config()).means("From the grid to detections, and what is written.");
  m.hook(check_classes());
  return m;
}

}  // namespace

const Message& tao_inference_specification() {
  static const Message message = inference_specification();
  return message;
}

}  // namespace octet::tasks::detectnet_v2
