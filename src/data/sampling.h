// How several sources share an epoch.
#pragma once
#include <vector>

#include "data/epoch_order.h"
#include "schema/enum_names.h"

namespace octet::data {

// TAO's sampling modes of several sources.
enum class SamplingMode {
  kUserDefined,   // each image comes DatasetOptions::weight times an epoch
  kProportional,  // each image once: a source as often as it has images
  kUniform,       // each source as often as the others; an epoch has as many images as all sources together
};
std::span<const schema::EnumName<SamplingMode>> enum_names(SamplingMode);

// `sources`: their images, and the weights that the user gave them.
std::vector<Portion> sampled(std::vector<Portion> sources, SamplingMode mode);

}  // namespace octet::data
