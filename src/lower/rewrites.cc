#include "lower/rewrites.h"

#include "lower/canonicalize.h"
#include "lower/moved_codes.h"
#include "lower/narrow_quantizers.h"
#include "lower/rewrite_forms.h"
#include "lower/row_operators.h"
#include "lower/wide_weights.h"

namespace octet::lower {

std::vector<passes::Pass> compile_passes() {
  return {
      // As passes::checkpoint_passes() has them: tensors lie in the engine as in what it is verified against.
      passes::find_pass("cancel_transposes"),
      passes::find_pass("sink_squeezes"),
      // Before any other node changes: it follows codes through what the file has.
      {"quantize_behind_moves", "quantize again what was moved as floats and a layer reads", quantize_behind_moves},
      // First the forms, as the passes behind it know those of the engine.
      {"rewrite_forms", "write operators in forms that the engine has steps for", rewrite_forms},
      passes::find_pass("remove_identity"),
      passes::find_pass("fold_batch_norm"),
      {"fold_bias_adds", "make biases of constants that are added to products and convolutions", fold_bias_adds},
      // Quantizers, once layers are what they stay.
      {"merge_quantizers", "make one of equal quantizers of a tensor", merge_quantizers},
      {"hoist_quantizers", "move quantizers before operators that move codes", hoist_quantizers},
      {"flatten_quantizers", "give ranks without a layout of codes rows", flatten_quantizers},
      {"compute_on_rows", "let operators along the last axis compute on rows, as products do", compute_on_rows},
      {"collapse_reshapes", "make one Reshape of several, or none", collapse_reshapes},
      {"split_wide_weights", "make two matrices of weights whose codes need nine bits", split_wide_weights},
      {"narrow_quantizers", "leave out negative codes of what is never negative", narrow_quantizers},
      {"remove_dead", "take out what reaches no output", [](ir::Graph& g) { return g.remove_dead(); }},
  };
}

}  // namespace octet::lower
