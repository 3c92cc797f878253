#include "spec/automatic.h"

#include "base/error.h"

namespace octet::spec {

void resolve_automatic(ExperimentSpec& spec, const std::string& name) {
  models::ModelOptions& model = spec.model;
  data::DataOptions& data = spec.data;
  if (model.auto_input) {
    if (model.load_graph)
      fail_usage(name, ": model.input: auto is that of a network of the zoo, and model.load_graph takes one from ",
                 model.pretrained, "; give channels, height and width");
    model.input = models::default_options(model.arch).input;
    model.auto_input = false;
  }
  if (data.auto_mean || data.auto_std) {
    const models::PixelStatistics usual = models::usual_pixels(model.arch, model.channels());
    if (data.auto_mean) data.transform.mean = usual.mean;
    if (data.auto_std) data.transform.std = usual.std;
    data.auto_mean = data.auto_std = false;
  }
  if (model.auto_num_classes) {
    if (data.train.empty())
      fail_usage(name, ": model.num_classes: auto is that of the training images, and there are none; add data.train");
    const auto classes = static_cast<int64_t>(data::training_class_names(data).size());
    if (classes == 0)
      fail_usage(name, ": model.num_classes: auto is that of the training images, and those of ",
                 data::paths_of(data.train), " have no classes; an image folder has a sub-folder for each class");
    model.num_classes = classes;
    model.auto_num_classes = false;
  }
}

}  // namespace octet::spec
