#include "data/input_preset.h"

namespace octet::data {

OCTET_ENUM_NAMES(InputPreset, {InputPreset::kNone, "none"}, {InputPreset::kTorchvision, "torchvision"},
                 {InputPreset::kKerasCaffe, "keras_caffe"}, {InputPreset::kKerasTf, "keras_tf"},
                 {InputPreset::kKerasTorch, "keras_torch"}, {InputPreset::kTfSlimInception, "tf_slim_inception"},
                 {InputPreset::kTfSlimVgg, "tf_slim_vgg"})

namespace {

struct Values {
  int64_t resize = 0;
  Interpolation interpolation = Interpolation::kAntialias;
  double central_fraction = 1;
  ChannelOrder order = ChannelOrder::kRgb;
  std::vector<double> mean, std;
};

// Means of pixels of 0 .. 255, of which nothing but the mean is subtracted.
std::vector<double> of_bytes(std::vector<double> mean) {
  for (double& m : mean) m /= 255;
  return mean;
}

Values values_of(InputPreset preset) {
  const std::vector<double> torch_mean{0.485, 0.456, 0.406}, torch_std{0.229, 0.224, 0.225};
  switch (preset) {
    case InputPreset::kNone:
      break;
    case InputPreset::kTorchvision:  // torchvision.transforms._presets.ImageClassification
      return {.resize = 256, .mean = torch_mean, .std = torch_std};
    // keras.applications' preprocess_input; images as image_dataset_from_directory gives them.
    case InputPreset::kKerasCaffe:
      return {.interpolation = Interpolation::kBilinear,
              .order = ChannelOrder::kBgr,
              .mean = of_bytes({103.939, 116.779, 123.68}),
              .std = {1.0 / 255}};
    case InputPreset::kKerasTf:
      return {.interpolation = Interpolation::kBilinear, .mean = {0.5}, .std = {0.5}};
    case InputPreset::kKerasTorch:
      return {.interpolation = Interpolation::kBilinear, .mean = torch_mean, .std = torch_std};
    case InputPreset::kTfSlimInception:  // preprocess_for_eval of inception_preprocessing
      return {.interpolation = Interpolation::kTensorflow1, .central_fraction = 0.875, .mean = {0.5}, .std = {0.5}};
    case InputPreset::kTfSlimVgg:  // preprocess_for_eval of vgg_preprocessing
      return {.resize = 256,
              .interpolation = Interpolation::kTensorflow1,
              .mean = of_bytes({123.68, 116.78, 103.94}),
              .std = {1.0 / 255}};
  }
  return {};
}

}  // namespace

void apply(InputPreset preset, TransformOptions& transform) {
  if (preset == InputPreset::kNone) return;
  const Values v = values_of(preset);
  transform.resize = v.resize;
  transform.interpolation = v.interpolation;
  transform.central_fraction = v.central_fraction;
  transform.order = v.order;
  transform.mean = v.mean;
  transform.std = v.std;
}

}  // namespace octet::data
