// What a training does where its loss is not finite.
#pragma once
#include <cstdint>
#include <span>

#include "schema/schema.h"

namespace octet::train {

enum class NonFinitePolicy { kStop, kSkip, kBackOff };
std::span<const schema::EnumName<NonFinitePolicy>> enum_names(NonFinitePolicy);

struct NonFiniteOptions {
  NonFinitePolicy policy = NonFinitePolicy::kStop;
  int64_t max_in_a_row = 10;     // steps without an update; more of them stop the training
  double back_off_factor = 0.5;  // of the learning rate, with kBackOff
};
void describe(schema::Section& s, NonFiniteOptions& non_finite);

}  // namespace octet::train
