#include "train/options/visualizer.h"

#include "schema/schema.h"

namespace octet::train {

void describe(schema::Section& s, VisualizerOptions& visualizer) {
  s.field("enabled", visualizer.enabled)
      .help("Detectors: draw what is found in validation images, and what there is, into TensorBoard.");
  s.field("num_images", visualizer.num_images)
      .range(1, 1000)
      .help("So many, the first of `data.val`, at every validation.");
  s.field("min_score", visualizer.min_score).range(0, 1e6).help("Least score of what is drawn.");
  s.field("scalar_logging_frequency", visualizer.scalar_logging_frequency)
      .range(1, 1'000'000)
      .unit("steps")
      .help("From one point of the curves of loss and learning rate to the next.");
}

}  // namespace octet::train
