#include "app/training/validation_pictures.h"

#include <algorithm>

#include "data/draw.h"
#include "data/image_write.h"

namespace octet::app {

void ValidationPictures::look(const tasks::Outputs& outputs, const data::Batch& batch) {
  const int64_t count = std::min(batch.size, options_.num_images - seen_);
  if (!options_.enabled || count <= 0) return;
  seen_ += count;
  const std::vector<tasks::Prediction> predictions = task_.decode(outputs, batch);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto* found = std::get_if<tasks::Objects>(&predictions.at(i));
    if (!found) return;
    tasks::Objects sure;
    std::copy_if(found->begin(), found->end(), std::back_inserter(sure),
                 [&](const vision::Object& object) { return object.score >= options_.min_score; });
    drawn_.push_back(draw("predictions", batch.indices[i], std::move(sure), batch.geometry[i]));
    if (truth_told_.insert(batch.indices[i]).second)
      drawn_.push_back(draw("truth", batch.indices[i], batch.truth[i].objects, batch.geometry[i]));
  }
}

std::vector<DrawnPicture> ValidationPictures::take() {
  seen_ = 0;
  return std::exchange(drawn_, {});
}

DrawnPicture ValidationPictures::draw(const std::string& kind, int64_t index, tasks::Objects objects,
                                      const data::Geometry& geometry) const {
  for (vision::Object& object : objects) object.box = geometry.to_image(object.box);
  data::Image picture = images_.get(index).image;
  const std::vector<std::string>& names = images_.class_names();
  data::draw_objects(picture, objects, [&](int label) {
    return static_cast<size_t>(label) < names.size() ? names[static_cast<size_t>(label)] : std::to_string(label);
  });
  return {.tag = "val/" + kind + "/" + images_.name(index),
          .png = data::encode_png(picture),
          .width = picture.width,
          .height = picture.height};
}

}  // namespace octet::app
