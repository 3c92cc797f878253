// Key `recipe`: settings of quantization-aware training that go together, by a name. They are defaults of other keys,
// so whatever the experiment says of these counts more, and a written experiment has the values that came out. The
// stage `control` trains as long and as fast, in float.
#pragma once
#include "quant/options.h"
#include "train/options/train_options.h"

namespace octet::spec {

// int8: the defaults, for float networks that have converged. efficientnet: Swish, gates and depthwise convolutions,
// taught for few epochs. w4a4: four bits.
enum class Recipe { kInt8, kEfficientNet, kW4A4 };
std::span<const schema::EnumName<Recipe>> enum_names(Recipe);

// What the keys of `quant` begin with.
quant::QuantOptions quantization_of(Recipe recipe);
// What the keys of `finetune` begin with.
train::TrainOptions finetune_of(Recipe recipe, const train::TrainOptions& train);

}  // namespace octet::spec
