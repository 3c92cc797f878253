#include "data/sampling.h"

#include "base/error.h"

namespace octet::data {

OCTET_ENUM_NAMES(SamplingMode, {SamplingMode::kUserDefined, "user_defined"},
                 {SamplingMode::kProportional, "proportional"}, {SamplingMode::kUniform, "uniform"})

std::vector<Portion> sampled(std::vector<Portion> sources, SamplingMode mode) {
  if (mode == SamplingMode::kUserDefined) return sources;
  double images = 0;
  for (const Portion& source : sources) images += static_cast<double>(source.images);
  for (Portion& source : sources) {
    OCTET_CHECK(source.images > 0);
    source.weight = mode == SamplingMode::kProportional
                        ? 1
                        : images / static_cast<double>(sources.size()) / static_cast<double>(source.images);
  }
  return sources;
}

}  // namespace octet::data
