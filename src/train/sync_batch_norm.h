// Batch norm over the images of all ranks: what one process would compute of all of them together.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "train/communicator.h"

namespace octet::train {

// Replaces what one rank has of each channel by what all have together: the number of values (of one channel), their
// mean and their variance (of the population).
void combine_statistics(Communicator& communicator, double& count, std::vector<double>& mean,
                        std::vector<double>& variance);
// The same for sums over values: count and sums become means over the ranks, so that sum / count is that of all.
void combine_sums(Communicator& communicator, double& count, std::vector<double>& first, std::vector<double>& second);

// Operator by operator, for devices and layouts without a fused kernel. x: [N, C, ...]; gamma, beta: [C], parameters
// perhaps. Moves the running statistics by `momentum`, the variance by its unbiased estimate. Has the type of x.
at::Tensor sync_batch_norm(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                           const at::Tensor& running_mean, const at::Tensor& running_variance, double momentum,
                           double epsilon, Communicator& communicator);

}  // namespace octet::train
