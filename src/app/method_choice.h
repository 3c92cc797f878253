// Method sqnr: which way of calibration serves a network best, by the noise in what the network gives out. Which one
// that is differs by several dB from network to network, and no histogram of a single tensor shows it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"
#include "quant/observer.h"
#include "quant/weight_calibrator.h"

namespace octet::app {

struct MethodChoice {
  quant::CalibrationOptions activations;
  quant::WeightCalibrationOptions weights;
  std::map<std::string, std::vector<double>> bias_shifts = {};  // for apply_corrections(); empty: none
};

// `placed` has quantizers, whose tensors were `observed`, and no scales yet. Finds what makes the engine differ least
// from the float network, by the ratio of signal to noise of its outputs (in dB, the mean over the outputs; of a
// network with a program behind it, what it hands over), on the first 100 images of `loader` at most: of mse, mse with
// a clipping_weight of 5 and of 20, and max for activations; then, where `may_correct`, of the two best of these the
// same with bias correction; then of `options.weights` and mse for weights. mse for activations, weights and biases as
// they are stay unless another gains 0.5 dB; also where the engine cannot run the network.
MethodChoice choose_method(const ir::Graph& placed, const quant::CalibrationSet& observed, const MethodChoice& options,
                           data::Loader& loader, bool may_correct);

}  // namespace octet::app
