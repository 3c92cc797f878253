// What libraries do to an image before a network of theirs sees it, by name: their networks give their accuracy with
// nothing else.
#pragma once
#include <span>

#include "data/augment.h"
#include "schema/enum_names.h"

namespace octet::data {

enum class InputPreset {
  kNone,
  kTorchvision,
  kKerasCaffe,
  kKerasTf,
  kKerasTorch,
  kTfSlimInception,
  kTfSlimVgg,
};
std::span<const schema::EnumName<InputPreset>> enum_names(InputPreset);

// Sets what the library does in evaluation: resize, interpolation, central fraction, order of the channels, mean and
// deviation. kNone changes nothing. docs/data.md has them as a table.
void apply(InputPreset preset, TransformOptions& transform);

}  // namespace octet::data
