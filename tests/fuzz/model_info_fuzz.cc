// Metadata of model files: whatever the entries hold, they say something or are refused with a UserError, also as the
// experiment that a model is run with. The input is lines, an entry each: the first byte chooses the key.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "app/model_description.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/model_info.h"

namespace {

namespace key = octet::engine::key;

constexpr const char* kKeys[] = {key::kTask,
                                 key::kClasses,
                                 key::kMean,
                                 key::kStd,
                                 key::kColorOrder,
                                 key::kLayout,
                                 key::kResize,
                                 key::kExifOrientation,
                                 key::kDecoder,
                                 key::kOldClasses,
                                 "names",
                                 "stride",
                                 "task",
                                 "imgsz",
                                 "args",
                                 "Image.BitmapPixelFormat",
                                 "Image.NominalPixelRange"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  octet::set_log_level(octet::LogLevel::kSilent);
  using octet::ir::DataType;
  using octet::ir::Shape;
  octet::app::ModelFacts model{.path = "input",
                               .metadata = {},
                               .signature = {.inputs = {{"x", {DataType::kFloat32, Shape{1, 3, 32, 32}}}},
                                             .outputs = {{"y", {DataType::kFloat32, Shape{1, 10}}}}}};
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) model.metadata[kKeys[static_cast<unsigned char>(line[0]) % std::size(kKeys)]] = line.substr(1);
  try {
    const octet::ModelInfo info = octet::engine::read_model_info(model.metadata);
    // What was read can be written.
    OCTET_CHECK(octet::engine::read_class_names({{key::kClasses, octet::engine::class_names_text(info.classes)}}) ==
                info.classes);
    octet::engine::image_format(info, 3);
  } catch (const octet::UserError&) {
  }
  octet::spec::ExperimentSpec spec;
  try {
    spec = octet::app::experiment_of(model);
  } catch (const octet::UserError&) {
    return 0;
  }
  // What Octet writes it must be able to read, and it says the same.
  model.metadata = octet::app::description_of(spec, model.signature);
  OCTET_CHECK(octet::app::description_of(octet::app::experiment_of(model), model.signature) == model.metadata);
  return 0;
}
