#include "tasks/detectnet_v2/tao_specification.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "schema/schema.h"
#include "tao/blocks.h"
#include "tao/tree.h"
#include "tasks/detectnet_v2/tao_classes.h"

namespace octet::tasks::detectnet_v2 {
namespace {

using schema::Node;
using tao::Count;
using tao::Message;
using tao::Tree;
using tao::UnusedField;

// ----------------------------------------------------------------------------------------------------------
// model_config

// TAO's templates with their depths, where they have some, and the networks of the zoo.
struct Arch {
  const char* arch;
  int64_t layers;  // 0: there is one depth alone
  const char* network;
};
constexpr Arch kArchs[] = {
    {"resnet", 10, "resnet10"},
    {"resnet", 18, "resnet18"},
    {"resnet", 34, "resnet34"},
    {"resnet", 50, "resnet50"},
    {"resnet", 101, "resnet101"},
    {"vgg", 16, "vgg16"},
    {"vgg", 19, "vgg19"},
    {"darknet", 19, "darknet19"},
    {"darknet", 53, "darknet53"},
    {"mobilenet_v1", 0, "mobilenet_v1"},
    {"mobilenet_v2", 0, "mobilenet_v2"},
    {"squeezenet", 0, "squeezenet"},
    {"googlenet", 0, "googlenet"},
    {"efficientnet_b0", 0, "efficientnet_b0"},
};
constexpr int64_t kUsualLayers = 18;

void read_arch(const Node& message, Tree& experiment, std::vector<UnusedField>&) {
  experiment.set(tao::parse_path("model.layout"), tao::scalar("tao", false, message.location), message.location);
  const Node *arch = message.find("arch"), *layers = message.find("num_layers");
  if (!arch && !layers) return;
  const std::string name = arch ? arch->text : "resnet";
  const int64_t depth = layers ? std::stoll(layers->text, nullptr, 0) : kUsualLayers;
  const std::string& location = (arch ? arch : layers)->location;
  std::vector<std::string> names, depths;
  for (const Arch& known : kArchs) {
    if (names.empty() || names.back() != known.arch) names.emplace_back(known.arch);
    if (name != known.arch) continue;
    if (known.layers == 0 || known.layers == depth)
      return experiment.set(tao::parse_path("model.arch"), tao::scalar(known.network, true, location), location);
    depths.push_back(std::to_string(known.layers));
  }
  if (!depths.empty())
    fail_usage(layers ? layers->location : location, ": 'model_config.num_layers' is ", depth, ", and the ", name,
               " of Octet has ", schema::alternatives(depths));
  fail_usage(location, ": 'model_config.arch' is '", schema::shortened(name), "'; Octet has ",
             schema::alternatives(names), did_you_mean(name, names));
}

std::vector<std::pair<std::string, Node>> write_arch(const Tree& experiment) {
  const std::string network = experiment.text(tao::parse_path("model.arch"));
  std::vector<std::pair<std::string, Node>> out;
  for (const Arch& known : kArchs) {
    if (network != known.network) continue;
    out.emplace_back("arch", tao::scalar(known.arch, true, ""));
    if (known.layers > 0) out.emplace_back("num_layers", tao::scalar(std::to_string(known.layers), false, ""));
  }
  return out;
}

Message objective_set() {
  constexpr const char* kFixed = "the box code of Octet's detector has the scale 35 and the offset 0.5";
  constexpr const char* kHead = "the head lies on the backbone's last level";
  Message bbox, cov, m;
  bbox.text("input").unused(kHead).means("Layer on which the head lies.");
  bbox.number("scale").unused(kFixed, "35").means("Distances of borders are divided by it.");
  bbox.number("offset").unused(kFixed, "0.5").means("Place of a cell's point within the cell in pixels.");
  cov.text("input").unused(kHead).means("Layer on which the head lies.");
  m.message("bbox", std::move(bbox)).means("Borders of boxes.");
  m.message("cov", std::move(cov)).means("Coverage of cells by objects.");
  return m;
}

Message model_config() {
  Message activation, precision, m;
  activation.text("activation_type").key("model.activation").means("relu, elu, ...");
  activation.number("activation_parameters", Count::kMap)
      .unused("activations have their usual parameters")
      .means("As alpha of elu.");
  precision.choice("backend_floatx", {{"FLOAT32", "fp32"}, {"FLOAT16", "auto"}, {"INVALID", ""}})
      .key("train.precision")
      .means("Type that is trained in; FLOAT16 is the low type that the hardware has.");
  m.text("pretrained_model_file").key("model.pretrained").means("Model that the training starts from.");
  m.flag("freeze_pretrained_layers")
      .unused("freeze_blocks names what is not trained", "false")
      .means("Train only what is not in that file.");
  m.flag("allow_loaded_model_modification")
      .key("model.allow_loaded_model_modification")
      .means("Let layers of another shape start from random weights.");
  m.integer("num_layers").hooked().key("model.arch").range(0).means("Depth of the network; 18 where it is absent.");
  m.flag("use_pooling").otherwise("false").key("model.use_pooling").means("Pool instead of striding.");
  m.flag("use_batch_norm").otherwise("false").key("model.use_batch_norm").means("Normalize behind convolutions.");
  m.number("dropout_rate")
      .range(0, 0.99)
      .unused("detectors have no dropout", "0")
      .means("Share of features that is left out in training.");
  m.message("activation", std::move(activation)).means("Activation of the network.");
  m.message("objective_set", objective_set()).means("What the head finds.");
  m.message("training_precision", std::move(precision)).means("Type that is trained in.");
  m.flag("freeze_bn").key("model.freeze_bn").means("Keep statistics and scales of batch norms.");
  m.number("freeze_blocks", Count::kList)
      .range(0, 1000)
      .key("model.freeze_blocks")
      .means("Blocks of the backbone that are not trained, by number.");
  m.text("arch").hooked().key("model.arch").means("Network, with num_layers where it has several depths.");
  m.flag("load_graph").key("model.load_graph").means("Take the graph of the file, too, as of a pruned model.");
  m.flag("all_projections")
      .key("model.all_projections")
      .means("Projections in all shortcuts, so that they can be pruned.");
  m.hook({.read = read_arch, .write = write_arch});
  return m;
}

// -------------------------------------------------------------------------------------------------
// bbox_rasterizer_config

Message bbox_rasterizer_config() {
  Message each, m;
  each.number("cov_center_x").range(0, 1).key(".cov_center_x").means("Center of the ellipse, of the width of the box.");
  each.number("cov_center_y")
      .range(0, 1)
      .key(".cov_center_y")
      .means("Center of the ellipse, of the height of the box.");
  each.number("cov_radius_x").range(0, 2).key(".cov_radius_x").means("Radius of the ellipse, of half the width.");
  each.number("cov_radius_y").range(0, 2).key(".cov_radius_y").means("Radius of the ellipse, of half the height.");
  each.number("bbox_min_radius").range(0, 1000).key(".bbox_min_radius").means("Least radius in cells.");
  m.message("target_class_config", std::move(each), Count::kMap)
      .key("detectnet_v2.bbox_rasterizer.target_class_config.*")
      .means("By class.");
  m.number("deadzone_radius")
      .range(0, 1)
      .key("detectnet_v2.bbox_rasterizer.deadzone_radius")
      .means("Zone around an ellipse that belongs to no other object, of what is left of the box.");
  return m;
}

// --------------------------------------------------------------------------------------------------
// cost_function_config

// The network has the classes in the order of target_classes.
void read_classes(const Node& message, Tree& experiment, std::vector<UnusedField>&) {
  size_t classes = 0;
  for (const schema::Entry& entry : message.entries)
    if (entry.key == "target_classes") {
      const Node& name = *entry.value.find("name");
      experiment.set(tao::parse_path(str("data.target_classes[", classes, "]")),
                     tao::scalar(name.text, true, name.location), name.location);
      ++classes;
    }
  if (classes > 0)
    experiment.set(tao::parse_path("model.num_classes"), tao::scalar(std::to_string(classes), false, message.location),
                   message.location);
}

Message cost_function_config() {
  const auto weights = [] {
    Message objective;
    objective.text("name").hooked().means("cov or bbox.");
    objective.number("initial_weight").range(0).key(".initial_weight").means("Weight of the objective at first.");
    objective.number("weight_target")
        .range(0)
        .key(".weight_target")
        .means("Share of the loss that autoweighting aims at.");
    return objective;
  };
  Message each, m;
  each.text("name").hooked().key("data.target_classes[]").means("Name of the class.");
  each.number("class_weight").range(0).key(".class_weight").means("Weight of the class.");
  each.number("coverage_foreground_weight")
      .range(0, 1)
      .key(".coverage_foreground_weight")
      .means("Weight of covered cells; the others have 1 - it.");
  each.message("objectives", weights(), Count::kList)
      .named_by("name", {{"cov", "coverage"}, {"bbox", "bbox"}})
      .key(".*")
      .means("Weights of coverage and boxes.");
  m.message("target_classes", std::move(each), Count::kList)
      .named_by("name")
      .key("detectnet_v2.cost_function.target_class_config.*")
      .means("The classes in the order of the network's outputs, with their weights.");
  m.flag("enable_autoweighting")
      .otherwise("false")
      .key("detectnet_v2.cost_function.enable_autoweighting")
      .means("Adapt the weights of the objectives after each epoch.");
  m.number("max_objective_weight")
      .range(0, 1)
      .key("detectnet_v2.cost_function.max_objective_weight")
      .means("Greatest weight of an objective.");
  m.number("min_objective_weight")
      .range(0, 1)
      .key("detectnet_v2.cost_function.min_objective_weight")
      .means("Least weight of an objective.");
  m.hook({.read = read_classes});
  return m;
}

// --------------------------------------------------------------------------------------------------
// postprocessing_config

Message postprocessing_config() {
  Message confidence, each, m;
  confidence.number("confidence_threshold").range(0, 1).means("Of a second network, the confidence model.");
  confidence.text("confidence_model_filename").means("File of the confidence model.");
  confidence.text("normalization_mode").means("Normalization of its input.");
  each.message("clustering_config", clustering_config()).means("From proposals to detections.");
  each.message("confidence_config", std::move(confidence))
      .unused("detections are scored by their coverage; there is no second network for it")
      .means("Confidence model.");
  m.message("target_class_config", std::move(each), Count::kMap)
      .key("detectnet_v2.postprocessing.target_class_config.*")
      .means("By class.");
  return m;
}

// ------------------------------------------------------------------------------------------------------
// evaluation_config

Message evaluation_config() {
  Message box, m;
  for (const char* const side : {"height", "width"})
    for (const char* const bound : {"minimum", "maximum"}) {
      const std::string name = std::string(bound) + "_" + side;
      box.integer(name)
          .range(0)
          .key(".evaluation_box_config." + name)
          .means(std::string(bound[1] == 'i' ? "Least " : "Greatest ") + side + " in pixels.");
    }
  m.integer("validation_period_during_training")
      .range(1, 100'000)
      .key("train.evaluate_interval")
      .means("Epochs between validations.");
  m.integer("first_validation_epoch")
      .range(0)
      .unused("validation begins with the first period")
      .means("First epoch with one.");
  m.integer("early_stopping_patience_steps")
      .range(0)
      .unused("early_stopping_annealing_schedule has the patience of its own", "0")
      .means("Validations without improvement until the training ends.");
  m.number("minimum_detection_ground_truth_overlap", Count::kMap)
      .range(0, 1)
      .key("detectnet_v2.evaluation.target_class_config.*")
      .behind("minimum_detection_ground_truth_overlap")
      .means("IoU from which a detection is right, by class.");
  m.message("evaluation_box_config", std::move(box), Count::kMap)
      .key("detectnet_v2.evaluation.target_class_config.*")
      .means("Sizes of the boxes that count, by class.");
  m.choice("average_precision_mode", {{"SAMPLE", "sample"}, {"INTEGRATE", "integrate"}})
      .otherwise("SAMPLE")
      .key("detectnet_v2.evaluation.average_precision_mode")
      .means("AP by eleven points, or by the area under the curve.");
  return m;
}

// -------------------------------------------------------------------------------------------------
// loss_mask_label_filter

Message loss_mask_label_filter() {
  Message dimensions, crop, source, filter, config, m;
  for (const char* const side : {"min_width", "min_height", "max_width", "max_height"})
    dimensions.number(side).range(0).key(std::string(".") + side).means("Bound of the box in pixels of the input.");
  for (const char* const side : {"crop_left", "crop_right", "crop_top", "crop_bottom"})
    crop.number(side).key(std::string(".") + side).means("Border of the region in pixels of the input.");
  source.text("source_class_names", Count::kList)
      .key(".source_classes")
      .means("Classes of the labels, before the mapping.");
  filter.message("bbox_dimensions_label_filter", std::move(dimensions))
      .one_of("label_filter_params")
      .key(".bbox_dimensions")
      .means("Boxes of these sizes.");
  filter.message("bbox_crop_label_filter", std::move(crop))
      .one_of("label_filter_params")
      .key(".bbox_crop")
      .means("Boxes in this region.");
  filter.message("source_class_label_filter", std::move(source))
      .one_of("label_filter_params")
      .means("Boxes of these classes.");
  config.message("label_filter", std::move(filter)).means("Which boxes are meant.");
  config.text("target_class_names", Count::kList)
      .key(".target_classes")
      .means("Classes of the network whose loss is masked; none: all.");
  config.text("objective_names", Count::kList)
      .spelled({{"cov", "coverage"}, {"bbox", "bbox"}})
      .key(".objectives")
      .means("Objectives whose loss is masked, cov and bbox; none: all.");
  m.message("objective_label_filter_configs", std::move(config), Count::kList).key(".filters[]").means("Filters.");
  m.number("mask_multiplier").range(0).key(".mask_multiplier").means("Factor on the loss in the boxes that are meant.");
  m.flag("preserve_ground_truth")
      .key(".preserve_ground_truth")
      .means("Cells with an object of the class keep their loss.");
  return m;
}

Message specification() {
  Message m;
  m.integer("random_seed").range(0).key("train.seed").also("data.seed").means("Seed of all that is random.");
  m.message("dataset_config", tao::dataset_config()).means("Images, labels, classes.");
  m.message("augmentation_config", tao::augmentation_config()).means("Size of the input, random changes.");
  m.message("postprocessing_config", postprocessing_config()).means("From the grid to detections.");
  m.message("model_config", model_config()).means("The network.");
  m.message("evaluation_config", evaluation_config()).means("Average precision.");
  m.message("cost_function_config", cost_function_config()).means("The loss, and the classes.");
  m.message("training_config", tao::training_config()).means("The training.");
  m.message("bbox_rasterizer_config", bbox_rasterizer_config()).means("What the grid learns of an object.");
  m.message("loss_mask_label_filter", loss_mask_label_filter())
      .key("detectnet_v2.loss_mask_label_filter")
      .means("Weights of the loss where some objects are.");
  m.message("dataset_export_config", tao::dataset_export_config(), Count::kList)
      .unused("data sets are read as they are, without being exported")
      .means("Data sets that are converted before the training.");
  m.hook(check_classes());
  return m;
}

}  // namespace

Message clustering_config() {
  Message m;
  m.number("coverage_threshold")
      .range(0, 1)
      .key(".coverage_threshold")
      .means("Cells with less coverage propose nothing.");
  m.integer("minimum_bounding_box_height")
      .range(0)
      .key(".minimum_bounding_box_height")
      .means("Lower boxes are dropped (by DBSCAN).");
  m.choice("clustering_algorithm", {{"DBSCAN", "dbscan"}, {"NMS", "nms"}, {"HYBRID", "hybrid"}})
      .otherwise("DBSCAN")
      .key(".clustering_algorithm")
      .means("How proposals become detections.");
  m.number("dbscan_eps").range(0, 1).key(".dbscan_eps").means("Greatest 1 - IoU of neighbors.");
  m.number("dbscan_min_samples").range(0).key(".dbscan_min_samples").means("Least sum of coverages around a core.");
  m.number("neighborhood_size")
      .range(0)
      .unused("a field of an algorithm that TAO no longer has")
      .means("Cells that are neighbors.");
  m.number("dbscan_confidence_threshold")
      .range(0)
      .key(".dbscan_confidence_threshold")
      .means("Least sum of a cluster's coverages.");
  m.number("nms_iou_threshold")
      .range(0, 1)
      .key(".nms_iou_threshold")
      .means("NMS: a box that overlaps a better one by more is dropped.");
  m.number("nms_confidence_threshold").range(0, 1).key(".nms_confidence_threshold").means("NMS: least score.");
  return m;
}

const Message& tao_specification() {
  static const Message message = specification();
  return message;
}

}  // namespace octet::tasks::detectnet_v2
