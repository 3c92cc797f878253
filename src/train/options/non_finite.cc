#include "train/options/non_finite.h"

namespace octet::train {

OCTET_ENUM_NAMES(NonFinitePolicy, {NonFinitePolicy::kStop, "stop"}, {NonFinitePolicy::kSkip, "skip"},
                 {NonFinitePolicy::kBackOff, "back_off"})

void describe(schema::Section& s, NonFiniteOptions& non_finite) {
  s.field("policy", non_finite.policy)
      .help(
          "stop ends the training and names the first tensor that overflowed; skip goes on with the next batch, as if "
          "this "
          "one had not been; back_off does that and lowers the learning rate from there on.");
  s.field("max_in_a_row", non_finite.max_in_a_row)
      .range(1, 1'000'000)
      .unit("steps")
      .help("More skipped steps one after the other stop the training.");
  s.field("back_off_factor", non_finite.back_off_factor)
      .range(1e-6, 1)
      .help("What policy back_off multiplies the learning rate by, each time.");
}

}  // namespace octet::train
