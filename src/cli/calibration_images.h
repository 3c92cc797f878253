// Running the images of an experiment or of a folder through a network for their ranges.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "quant/observer.h"
#include "spec/experiment.h"

namespace octet::cli {

struct CalibrationImages {
  const spec::ExperimentSpec& spec;
  std::string folder;  // of images to take; empty: those of the experiment
};

// app::calibrate and app::measure_ranges; NeedsTraining as calibrate() of calibration.h has it.
void calibrate_with_images(ir::Graph& graph, const CalibrationImages& images, const std::filesystem::path& dump_passes);
std::map<std::string, quant::Range> measure_with_images(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                                        const CalibrationImages& images);

}  // namespace octet::cli
