// What an experiment says of how a training is shown; names as TAO's visualizer.
#pragma once
#include <cstdint>

namespace octet::schema {
class Section;
}

namespace octet::train {

struct VisualizerOptions {
  bool enabled = false;                   // pictures
  int64_t num_images = 3;                 // the first of the validation
  double min_score = 0.5;                 // of what is drawn
  int64_t scalar_logging_frequency = 10;  // steps from one point of the curves to the next
};
void describe(schema::Section& s, VisualizerOptions& visualizer);

}  // namespace octet::train
