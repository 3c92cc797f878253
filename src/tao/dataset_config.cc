#include "base/error.h"
#include "tao/blocks.h"
#include "tao/tree.h"

namespace octet::tao {
namespace {

Message data_source() {
  Message m;
  m.text("tfrecords_path").key(".labels").means("TFRecord files with the labels: a folder, or a pattern with * and ?.");
  m.text("image_directory_path")
      .key(".path")
      .means("Folder from which the frame ids of the records lead to the images.");
  m.number("source_weight").range(0).key(".source_weight").means("Factor on the loss of the frames of this source.");
  return m;
}

// The ending stands once for all sources in TAO, and with each source in Octet.
Hook image_extension() {
  const auto sections = [](const Tree& experiment) {
    std::vector<Path> out;
    for (const char* const sources : {"data.train", "data.val"}) {
      const schema::Node* node = experiment.find(parse_path(sources));
      if (!node) continue;
      if (node->kind == schema::Node::Kind::kMap) out.push_back(parse_path(sources));
      for (size_t i = 0; i < node->items.size(); ++i) out.push_back(parse_path(str(sources, "[", i, "]")));
    }
    return out;
  };
  const auto ending_in = [](Path section) {
    section.push_back("image_extension");
    return section;
  };
  return {.read =
              [=](const schema::Node& message, Tree& experiment, std::vector<UnusedField>&) {
                const schema::Node* ending = message.find("image_extension");
                if (!ending) return;
                for (const Path& section : sections(experiment))
                  experiment.set(ending_in(section), scalar(ending->text, true, ending->location), ending->location);
              },
          .write =
              [=](const Tree& experiment) {
                std::vector<std::pair<std::string, schema::Node>> out;
                for (const Path& section : sections(experiment))
                  if (const schema::Node* ending = experiment.find(ending_in(section)); ending && out.empty())
                    out.emplace_back("image_extension", *ending);
                return out;
              }};
}

Message sample_modifier_config() {
  Message m;
  m.text("filter_samples_containing_only", Count::kList).means("Frames with objects of only this class are left out.");
  m.text("dominant_target_classes", Count::kList).means("Classes that others are compared with before a duplication.");
  m.number("minimum_target_class_imbalance", Count::kMap).means("Imbalance from which a frame is duplicated.");
  m.integer("num_duplicates").means("How many duplicates are added.");
  m.integer("max_training_samples").means("Most training frames.");
  m.text("source_to_target_class_mapping", Count::kMap).means("Class mapping of the filter alone.");
  return m;
}

Message kitti_config() {
  Message m;
  m.text("root_directory_path").means("Folder of the data set.");
  m.text("image_dir_name").means("Folder of the images in it.");
  m.text("label_dir_name").means("Folder of the label files in it.");
  m.text("point_clouds_dir").means("Folder of point clouds.");
  m.text("calibrations_dir").means("Folder of camera calibrations.");
  m.text("kitti_sequence_to_frames_file").means("File that names the frames of each sequence.");
  m.text("image_extension").means("Ending of image files.");
  m.integer("num_partitions").means("Parts that the frames are divided into.");
  m.integer("num_shards").means("TFRecord files of each part.");
  m.text("partition_mode").means("random or sequence.");
  m.number("val_split").means("Percentage of validation frames (random).");
  return m;
}

Message coco_config() {
  Message m;
  m.text("root_directory_path").means("Folder of the data set.");
  m.text("img_dir_names", Count::kList).means("Folders of the images in it.");
  m.text("annotation_files", Count::kList).means("JSON files, one for each folder.");
  m.integer("num_partitions").means("Parts, one for each JSON file.");
  m.integer("num_shards", Count::kList).means("TFRecord files of each part.");
  return m;
}

}  // namespace

Message dataset_config() {
  Message m;
  m.message("data_sources", data_source(), Count::kList)
      .key("data.train[]")
      .sets(".format", "tfrecord")
      .means("Training images and their labels.");
  m.text("image_extension")
      .hooked()
      .key("data.train[].image_extension")
      .means("Ending of the image files: png, jpg or jpeg.");
  m.text("target_class_mapping", Count::kMap)
      .key("data.target_class_mapping.*")
      .means("Class of the labels (key) to class of the network (value); others are left out.");
  m.integer("validation_fold")
      .range(0)
      .one_of("dataset_split_type")
      .key("data.validation_fold")
      .means("Partition of the TFRecords that validates and is not trained with.");
  m.message("validation_data_source", data_source())
      .key("data.val")
      .sets(".format", "tfrecord")
      .one_of("dataset_split_type")
      .means("Validation images from another source.");
  m.choice("dataloader_mode", {{"MULTISOURCE", ""}, {"LEGACY", ""}, {"DEFAULT", ""}})
      .unused("Octet has one loader, which takes several sources")
      .means("Which of TAO's loaders reads the data.");
  m.choice("sampling_mode",
           {{"USER_DEFINED", "user_defined"}, {"PROPORTIONAL", "proportional"}, {"UNIFORM", "uniform"}})
      .key("data.sampling_mode")
      .means("How often each of several sources is drawn from.");
  m.hook(image_extension());
  return m;
}

Message dataset_export_config() {
  Message m;
  m.message("coco_config", coco_config()).one_of("convert_config_type").means("COCO data that is converted.");
  m.message("kitti_config", kitti_config()).one_of("convert_config_type").means("KITTI data that is converted.");
  m.message("sample_modifier_config", sample_modifier_config()).means("Filters and duplicates frames.");
  m.text("image_directory_path").means("Folder from which frame ids lead to the images.");
  m.text("target_class_mapping", Count::kMap).means("Class mapping, for statistics alone.");
  return m;
}

}  // namespace octet::tao
