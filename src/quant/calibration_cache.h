// TensorRT's calibration cache: a text with the INT8 scale of each activation tensor by name, which builders of
// TensorRT up to 10.x take beside a float ONNX file. (TensorRT 11 takes QDQ ONNX only.)
//
//   TRT-8601-EntropyCalibration2
//   input_1: 3c010a14
//   conv1/Relu: 3d418306
//
// The first line has version and algorithm; the others, behind the last colon of the line, the bits of a float32 in
// hexadecimal digits, the most significant first: scale = range / 127, so that range 6.0 is 3d418306.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace octet::quant {

// A version of TensorRT as caches write it: MAJOR * 1000 + MINOR * 100 + PATCH.
struct TensorRtVersion {
  int major = 8, minor = 6, patch = 1;

  int cache_number() const { return major * 1000 + minor * 100 + patch; }
  std::string text() const;  // "8.6.1"
};

// "8.6", "8.6.1" or "8.6.1.6" (the last number is that of the build). UserError (exit 2), naming `flag`, otherwise.
TensorRtVersion parse_tensorrt_version(const std::string& text, const std::string& flag);

struct CalibrationCache {
  std::string version = "8601";  // as the first line has it; empty where that is the bare "1" of early TAO versions
  std::string algorithm = "EntropyCalibration2";
  std::map<std::string, float> scales;  // by tensor; finite, >= 0; 0: the tensor was always zero
};

// Of the bytes of a cache file; `name` stands for the file in messages. Empty lines and carriage returns before the end
// of a line are no matter. UserError with the line for anything else, a tensor that is there twice included.
CalibrationCache parse_calibration_cache(std::string_view text, const std::string& name);

// The file, tensors sorted by name, in the very digits that TAO writes (no leading zeros). UserError naming a tensor
// whose name has a line break.
std::string calibration_cache_text(const CalibrationCache& cache);

}  // namespace octet::quant
