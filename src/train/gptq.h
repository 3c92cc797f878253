// Rounding with compensation: each weight of a layer is rounded in turn, and those that follow make up for its error.
#pragma once
#include <functional>
#include <vector>

#include "quant/gptq_options.h"
#include "train/weight_rounding.h"

namespace octet::train {

// round_layers() by GPTQ (Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
// Transformers", 2022), with three changes. A weight goes to the code above or below, as in AdaRound, so that few
// images are not followed far. The error that the layers before have left in its inputs is made up for as well. At the
// end single weights go to their other code while that makes the error smaller (coordinate descent, as in QuantEase,
// Behdin et al., 2023). Nothing is trained: it takes the second moments of what the layer reads and a Cholesky
// decomposition, a tenth of the time that AdaRound takes. Layers whose results are not products with patches of their
// input (ConvTranspose, 1-D and 3-D convolutions) or that read patches of more than 11,585 numbers get the nearest
// codes. The same bytes again with the same images, options and threads.
std::vector<RoundedLayer> round_by_gptq(ir::Graph& graph, data::Loader& loader, const quant::GptqOptions& options,
                                        const std::function<void(const RoundedLayer&)>& progress = {});

}  // namespace octet::train
