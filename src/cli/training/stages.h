// Stages of an experiment that train nothing, as Horizon's HAT has them beside float and qat: calibration finds the
// ranges of the float model, int_infer makes the engine and measures that.
#pragma once
#include <string>

#include "base/error.h"
#include "cli/flags.h"

namespace octet::cli {

struct StageFiles {
  std::string model;          // of -m
  std::string results, name;  // NAME.onnx and its like in that folder
  bool force = false;         // replace what is there
};

// What `octet calibrate` does: NAME.onnx with quantizers.
ExitCode run_calibration_stage(const SpecFlags& spec, const StageFiles& files);
// NAME.qdq.onnx, NAME.octet, and NAME.json with what the engine scores on the test images (else the validation images),
// which is printed. UserError (exit 2) where the model holds no quantizers.
ExitCode run_integer_stage(const SpecFlags& spec, const StageFiles& files);

}  // namespace octet::cli
