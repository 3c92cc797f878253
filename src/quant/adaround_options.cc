#include "quant/adaround_options.h"

#include "schema/schema.h"

namespace octet::quant {

void describe(schema::Section& s, AdaRoundOptions& options) {
  s.field("iterations", options.iterations)
      .range(0, 1'000'000)
      .help("Steps for each layer: 1,000 to 10,000. 0: weights are rounded to the nearest code.");
  s.field("images", options.images).range(1, 1'000'000).help("Of the calibration images.");
  s.field("batch_size", options.batch_size).range(1, 65'536).unit("images").help("Of a step.");
  s.field("lr", options.lr).above(0, 1).help("Rate of Adam.");
  s.field("regularization", options.regularization)
      .range(0, 1000)
      .help("Weight of the term that drives every weight to one of its two codes.");
}

}  // namespace octet::quant
