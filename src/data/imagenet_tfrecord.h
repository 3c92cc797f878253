// ImageNet as TFRecord files, in the layout of TF-slim and of the TensorFlow models: one tf.train.Example for each
// image.
#pragma once
#include <memory>

#include "data/dataset.h"

namespace octet::data {

// Features of the Examples. Others are not looked at.
inline constexpr const char* kEncodedFeature = "image/encoded";      // bytes of a JPEG or PNG file
inline constexpr const char* kLabelFeature = "image/class/label";    // an integer
inline constexpr const char* kSynsetFeature = "image/class/synset";  // optional: n01440764
inline constexpr const char* kTextFeature = "image/class/text";      // optional: "tench, Tinca tinca"

// The files of find_shards(options.path, options.split). The class of an image is its label less options.label_offset.
// Classes are called by their synsets, which are distinct, else by their texts; by numbers where classes have no image,
// as then not all names are known.
//
// Opening reads where records lie, labels and names. The image, and the checksum over all of its record, is read with
// the sample, where damage is a CorruptSample. UserError, naming file, record and byte, for files that are cut off or
// no TFRecord files; where nothing is left; for labels below label_offset, with how many; for a class of two synsets
// and one synset of two classes.
std::unique_ptr<Dataset> open_imagenet_tfrecord(const DatasetOptions& options);

}  // namespace octet::data
