#include "cli/calibration_images.h"

#include "app/image_files.h"
#include "app/network_file.h"
#include "cli/calibration.h"
#include "tasks/image_graph.h"

namespace octet::cli {
namespace {

app::DataStream open(const ir::Graph& graph, const CalibrationImages& images) {
  app::require_sizes(tasks::signature_of(graph), images.spec.model, "the network");
  const int64_t at_a_time = tasks::images_at_a_time(graph);
  if (images.folder.empty()) return app::open_calibration_data(images.spec, at_a_time);
  const data::NetworkInput input = tasks::image_input(graph);
  return app::open_calibration_files(images.spec, {images.folder}, {input.channels, input.height, input.width},
                                     at_a_time);
}

}  // namespace

void calibrate_with_images(ir::Graph& graph, const CalibrationImages& images,
                           const std::filesystem::path& dump_passes) {
  const app::DataStream stream = open(graph, images);
  calibrate(graph, *stream.loader, images.spec.quant, dump_passes);
}

std::map<std::string, quant::Range> measure_with_images(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                                        const CalibrationImages& images) {
  const app::DataStream stream = open(graph, images);
  return app::measure_ranges(graph, tensors, *stream.loader, images.spec.quant.calibration, observer());
}

}  // namespace octet::cli
