// Empirical bias correction (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction,
// 2019, section 4.2 and appendix D): quantization moves the mean of a channel, because the errors of weights and
// activations do not cancel; the difference to the float network's mean goes into the bias. By LibTorch, for networks
// that the engine (app/bias_correction.h) cannot run.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"
#include "train/communicator.h"

namespace octet::train {

// For each Conv, ConvTranspose and Gemm with quantized weights, by its name: what to add to the bias of each output
// channel. `graph` has scales (frozen); its only input takes [N, C, H, W]. Both networks run over one epoch of
// `loader`, batch by batch: what a node is corrected by is found behind the corrected nodes before it, on this batch,
// and the mean over the batches counts. UserError where there is no image.
std::map<std::string, std::vector<double>> bias_corrections(const ir::Graph& graph, data::Loader& loader,
                                                            const std::function<void(int64_t images)>& progress = {},
                                                            Communicator& communicator = single_process());

// The means over `images` that each rank found become those over the images of all, on every rank. UserError where
// there is none, but for no nodes to correct.
void share_corrections(std::map<std::string, std::vector<double>>& shifts, int64_t images, Communicator& communicator);

}  // namespace octet::train
