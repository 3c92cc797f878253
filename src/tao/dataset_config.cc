#include "tao/blocks.h"

namespace octet::tao {
namespace {

Message data_source() {
  Message m;
  m.text("tfrecords_path")
      .unused("labels are read from the KITTI files beside the images")
      .means("TFRecord files with the labels; a pattern with * and ?.");
  m.text("image_directory_path")
      .key(".path")
      .means("Folder from which the frame ids of the TFRecords lead to the images.");
  m.number("source_weight").range(0, 1000).key(".weight").means("Weight of the frames of this source.");
  return m;
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
      .sets(".format", "kitti")
      .means("Training images and their labels.");
  m.text("image_extension").unused("the ending of an image is found by looking for it").means("png, jpg or jpeg.");
  m.text("target_class_mapping", Count::kMap)
      .unused("classes keep their names")
      .means("Class of the labels (key) to class of the network (value); others are dropped.");
  m.integer("validation_fold")
      .range(0)
      .one_of("dataset_split_type")
      .unused("no partition is left out of the training")
      .means("Partition of the TFRecords that is for validation.");
  m.message("validation_data_source", data_source())
      .key("data.val")
      .sets(".format", "kitti")
      .one_of("dataset_split_type")
      .means("Validation images from another source.");
  m.choice("dataloader_mode", {{"MULTISOURCE", ""}, {"LEGACY", ""}, {"DEFAULT", ""}})
      .unused("Octet has one loader, which takes several sources")
      .means("Which of TAO's loaders reads the data.");
  m.choice("sampling_mode", {{"USER_DEFINED", ""}, {"PROPORTIONAL", ""}, {"UNIFORM", ""}})
      .unused("sources are drawn from by their weights")
      .means("How often each of several sources is drawn from.");
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
