// Annotated images, whatever they are stored in. A dataset is opened once (structure checked, annotations read, nothing
// decoded) and then read by many threads.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/annotation.h"
#include "data/findings.h"
#include "data/image.h"
#include "schema/enum_names.h"

namespace octet::data {

struct Sample {
  Image image;
  Annotation truth;
};

// One image that cannot be decoded. The loader skips and counts these; everything else that goes wrong is a UserError.
class CorruptSample : public std::runtime_error {
 public:
  CorruptSample(std::string name, std::string reason)
      : std::runtime_error(name + ": " + reason), name_(std::move(name)), reason_(std::move(reason)) {}
  const std::string& name() const { return name_; }      // file (and record in it)
  const std::string& reason() const { return reason_; }  // what is wrong with it

 private:
  std::string name_, reason_;
};

// All const members may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  // `index` in [0, size()). Throws CorruptSample when this one image is damaged.
  virtual Sample get(int64_t index) const = 0;
  // That of get(index) without decoding the image.
  virtual Annotation truth(int64_t index) const = 0;
  // The file of an image, with the record number where a file holds many.
  virtual std::string name(int64_t index) const = 0;
  // The bytes of an image's file, where the dataset keeps such: to be copied without loss. Throws CorruptSample where
  // they cannot be read.
  virtual std::optional<std::string> encoded(int64_t /*index*/) const { return std::nullopt; }
  // Changes when the images or labels change: hash of the bytes where the dataset lives in memory, else of the sorted
  // file names and sizes. For provenance, not security.
  virtual uint64_t content_hash() const = 0;

  // One name per class, in the order of the labels; empty when the dataset has no labels.
  const std::vector<std::string>& class_names() const { return class_names_; }
  bool labeled() const { return !class_names_.empty(); }
  // What was wrong with the files, and was left out.
  const Findings& findings() const { return findings_; }
  // Further ones, of what was done with it since.
  void add_remarks(const std::vector<std::string>& remarks) {
    for (const std::string& remark : remarks) findings_.remark(remark);
  }

 protected:
  std::vector<std::string> class_names_;
  Findings findings_;
};

// One of the parts of a data set, or all others.
struct FoldChoice {
  int64_t fold = 0;  // from 0
  bool others = false;
};

class MemoryBudget;  // image_cache.h

struct DatasetOptions {
  // idx           MNIST files, plain or gzip. `path` is the images file (with `labels` beside it, or none), or a
  // directory
  //               with the usual four files, of which `split` (train | test) chooses two.
  // image_folder  one sub-directory per class, classes sorted by name; or a flat folder of images without labels.
  //               With `split`, the sub-directory of that name. JPEG, PNG, BMP, WebP, PPM, PGM.
  // cifar10, cifar100  the binary version: one .bin file, or the directory with the batches, of which `split` chooses.
  // imagenet_tfrecord  images and classes in records. `path` is a file, a pattern, or a folder, of which `split` names
  //               the set of files.
  // voc, kitti, coco, tfrecord  objects in images: objects/<format>.h says where.
  std::string format = "image_folder";
  std::filesystem::path path;
  std::filesystem::path labels;
  std::string split;
  int64_t offset = 0;  // first image taken, in the order of the file
  int64_t limit = 0;   // how many are taken from there; 0: all that follow
  double weight = 1;   // of training: how often each image comes in an epoch, on average (EpochOrder)
  // 1 (gray) or 3 (RGB); 0 takes images as they are stored, which for an image folder, where files may differ, is RGB.
  int channels = 0;
  // JPEG files may be decoded at a reduced size as long as both sides keep at least this many pixels; 0 decodes in
  // full. See decode_hint() of augment.h.
  int min_decode_side = 0;
  bool exif_orientation = false;    // of image folders: DecodeOptions::exif_orientation
  std::string image_extension;      // tfrecord: of the image files; empty: any that is found
  int64_t label_offset = 1;         // imagenet_tfrecord: the label of the first class
  bool masks = false;               // coco: outlines of objects are read, too
  bool lower_case_classes = false;  // names of classes as TAO's converters write them
  double source_weight = 1;         // of each image in the loss: Annotation::weight
  int64_t folds = 0;                // parts that the images are divided into; 0: one
  std::optional<FoldChoice> fold;   // absent: all
  // Where decoded images are kept, if the format does not hold them decoded anyway; null: nowhere.
  std::shared_ptr<MemoryBudget> cache;
};

struct AnnotatedSet;  // objects/annotated_set.h

void describe(schema::Section& s, DatasetOptions& source);

// What DatasetOptions::format may be. A new format is a file pair that opens it, or reads its objects, a row in
// dataset.cc and a test.
struct DatasetFormat {
  const char* name;
  const char* help;  // what it stands for, for docs/spec.md; may be empty
  std::unique_ptr<Dataset> (*open)(const DatasetOptions&) = nullptr;
  AnnotatedSet (*read_objects)(const DatasetOptions&) = nullptr;  // in place of `open`, where images have objects
  bool fixed_splits = false;                                      // train and test only; others name their own
  bool separate_labels = false;                                   // takes DatasetOptions::labels
  bool patterns = false;                                          // DatasetOptions::path may have * and ?
  bool own_folds = false;                                         // its files say which fold they are of
  bool decoded = false;                                           // its datasets lie decoded in memory
  // Where the images themselves name the classes, whose numbers are then the order of the names: the names, without
  // opening the images.
  std::vector<std::string> (*class_names)(const DatasetOptions&) = nullptr;
};
std::span<const DatasetFormat> dataset_formats();
const DatasetFormat& dataset_format(const std::string& name);  // UserError (exit 2) with the names

// The names of the classes alone, as cheap as the format allows: of an image folder nothing but the directories is
// read.
std::vector<std::string> read_class_names(const DatasetOptions& options);

// UserError (exit 2 for an unknown format, split, fold or channel count, 1 for missing, empty or damaged files).
std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options);

}  // namespace octet::data
