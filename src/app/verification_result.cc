#include "app/verification_result.h"

#include <algorithm>

#include "base/error.h"

namespace octet::app {

int64_t Verification::violations() const {
  int64_t sum = 0;
  for (const TensorCheck& t : tensors) sum += t.violations;
  return sum;
}

int64_t Verification::count(TensorPlace place) const {
  return std::count_if(tensors.begin(), tensors.end(), [&](const TensorCheck& t) { return t.place == place; });
}

std::string Verification::objection(std::optional<double> smallest_agreement) const {
  const int64_t compared = count(TensorPlace::kCompared);
  const std::string of = str(" of the ", tensors.size(), " quantized tensors of the model");
  if (compared == 0)
    return str("the engine holds none", of,
               ", so it was not compiled from this model, or from it without its quantizers");
  for (const TensorCheck& t : tensors) {
    if (t.place == TensorPlace::kMissing)
      return str(count(TensorPlace::kMissing), of, " are not in the engine, '", t.tensor,
                 "' among them; compile this model again");
    if (t.place == TensorPlace::kOtherScale) return str("quantized tensor '", t.tensor, "' has ", t.note);
  }
  if (tensor_images == 0) return "no tensor and no score was compared";
  if (violations() > 0) return str(violations(), " codes are wrong");
  for (const ScoreCheck& s : scores) {
    if (!s.discrete && !(s.largest_difference <= s.tolerance()))
      return str("output '", s.output, "' differs from the model's by ", s.largest_difference,
                 ", float arithmetic explains ", s.tolerance());
    const double allowed = (1 - smallest_agreement.value_or(0.999)) * static_cast<double>(s.elements);
    if (s.discrete && static_cast<double>(s.different) > std::max(smallest_agreement ? 0.0 : 1.0, allowed))
      return str("output '", s.output, "' differs in ", s.different, " of ", s.elements, " elements");
  }
  if (predicts && smallest_agreement && agreement() < *smallest_agreement)
    return str("the predictions agree on ", agree, " of ", images, " images, ", 100 * agreement(),
               " %, and --agreement asks for ", 100 * *smallest_agreement, " %");
  return "";
}

}  // namespace octet::app
