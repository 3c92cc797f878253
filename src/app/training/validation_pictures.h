// What a detector finds in some of the validation images while it is trained, and what there is, as pictures.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/evaluate.h"
#include "train/options/visualizer.h"

namespace octet::app {

struct DrawnPicture {
  std::string tag;  // "val/predictions/NAME", or "val/truth/NAME", once
  std::string png;
  int width = 0, height = 0;
};

// Nothing is owned.
class ValidationPictures {
 public:
  ValidationPictures(const tasks::Task& task, const data::Dataset& images, const train::VisualizerOptions& options)
      : task_(task), images_(images), options_(options) {}

  // Of a validation, batch by batch; nothing for a task that finds no objects.
  void look(const tasks::Outputs& outputs, const data::Batch& batch);
  // Those of the validation that is over.
  std::vector<DrawnPicture> take();

 private:
  DrawnPicture draw(const std::string& kind, int64_t index, tasks::Objects objects,
                    const data::Geometry& geometry) const;

  const tasks::Task& task_;
  const data::Dataset& images_;
  train::VisualizerOptions options_;
  std::vector<DrawnPicture> drawn_;
  int64_t seen_ = 0;              // images of this validation
  std::set<int64_t> truth_told_;  // by index
};

}  // namespace octet::app
