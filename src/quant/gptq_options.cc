#include "quant/gptq_options.h"

#include "schema/schema.h"

namespace octet::quant {

void describe(schema::Section& s, GptqOptions& options) {
  s.field("images", options.images)
      .range(0, 1'000'000)
      .help("Of the calibration images: 100 to 1,000. 0: weights are rounded to the nearest code.");
  s.field("damping", options.damping)
      .range(1e-6, 10)
      .help(
          "How much a weight's own error counts beside what the images show, times their mean square. Small values fit "
          "these images more closely.");
}

}  // namespace octet::quant
