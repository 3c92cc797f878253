#include "spec/automatic.h"

#include <array>

#include "base/error.h"
#include "data/network_input.h"
#include "ir/input_shape.h"

namespace octet::spec {

void take_input_shape(ExperimentSpec& spec, const std::string& name) {
  models::ModelOptions& model = spec.model;
  const ir::InputShape* images = nullptr;
  const std::vector<ir::InputShape> shapes = ir::parse_input_shapes(model.input_shape);
  for (const ir::InputShape& each : shapes)
    if (each.shape.size() == 4) {
      if (images != nullptr) return;
      images = &each;
    }
  if (images == nullptr) return;
  const data::NetworkInput input = data::read_network_input(images->name, images->shape);
  const std::array<int64_t, 3> sizes = {input.channels, input.height, input.width};
  const bool said = !model.input_unsaid && !model.auto_input;
  bool open = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    open = open || sizes.at(i) < 0;
    if (sizes.at(i) < 0 || sizes.at(i) == model.input.at(i)) continue;
    if (said)
      fail_usage(name, ": model.input_shape (--input-shape) says ", ir::input_shape_text(*images),
                 ", and model.input says ", ir::shape_string({model.input.begin(), model.input.end()}),
                 " (channels, height, width); leave one of them out");
    model.input.at(i) = sizes.at(i);
  }
  if (open) return;
  model.input_unsaid = false;
  model.auto_input = false;
}

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
