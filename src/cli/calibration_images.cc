// Of the program without LibTorch.
#include "cli/calibration_images.h"

#include "base/error.h"

namespace octet::cli {

void calibrate_with_images(ir::Graph&, const CalibrationImages&, const std::filesystem::path&) {
  fail_usage("a calibration runs images through the network, which this build without training cannot");
}

std::map<std::string, quant::Range> measure_with_images(const ir::Graph&, const std::vector<std::string>&,
                                                        const CalibrationImages&) {
  fail_usage("measuring ranges runs images through the network, which this build without training cannot");
}

}  // namespace octet::cli
