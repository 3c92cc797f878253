#include "tasks/detectnet_v2/options.h"

namespace octet::tasks::detectnet_v2 {

void describe_decoder(schema::Section& section, Options& options) {
  section.section("postprocessing", options.postprocessing)
      .known_elsewhere_as({"postprocessing_config", "clustering_config"})
      .help("From the grid to detections.");
}

void describe(schema::Section& section, Options& options) {
  section.field("stride", options.stride)
      .one_of({4, 8, 16, 32})
      .unit("pixels")
      .help("From one cell of the grid to the next; a level of the backbone.");
  section.section("bbox_rasterizer", options.loss.rasterizer)
      .known_elsewhere_as({"bbox_rasterizer_config"})
      .help("Objects as ellipses of coverage on the grid: what the network learns.");
  section.section("cost_function", [&](schema::Section& s) { describe_cost(s, options.loss); })
      .known_elsewhere_as({"cost_function_config"})
      .help("The loss.");
  section.section("loss_mask_label_filter", options.loss.loss_mask)
      .written_when([&options] { return !options.loss.loss_mask.filters.empty(); })
      .help("Cells under chosen objects, whose loss counts less, more or not at all.");
  describe_decoder(section, options);
  describe_object_metrics(section, options.metrics);
}

}  // namespace octet::tasks::detectnet_v2
