#include "train/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "train/ops_common.h"

namespace octet::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// One message: the mean over the ranks of the count and of both vectors.
void mean_over_ranks(Communicator& communicator, double& count, std::vector<double>& first,
                     std::vector<double>& second) {
  const auto channels = static_cast<int64_t>(first.size());
  at::Tensor all = at::empty({1 + 2 * channels}, at::kDouble);
  auto* values = all.mutable_data_ptr<double>();
  values[0] = count;
  std::copy(first.begin(), first.end(), values + 1);
  std::copy(second.begin(), second.end(), values + 1 + channels);
  communicator.all_reduce({&all, 1}, Reduce::kMean);
  count = values[0];
  std::copy_n(values + 1, channels, first.begin());
  std::copy_n(values + 1 + channels, channels, second.begin());
}

std::vector<double> numbers(const at::Tensor& vector) {
  const at::Tensor plain = vector.to(at::kCPU, at::kDouble).contiguous();
  return {plain.const_data_ptr<double>(), plain.const_data_ptr<double>() + plain.numel()};
}

at::Tensor vector_like(const at::Tensor& like, const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).to(like.device(), like.scalar_type());
}

std::vector<int64_t> all_but_channels(const at::Tensor& x) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < x.dim(); ++axis)
    if (axis != 1) axes.push_back(axis);
  return axes;
}

at::Tensor precise(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

struct Normalize : torch::autograd::Function<Normalize> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                            at::Tensor running_mean, at::Tensor running_variance, double momentum, double epsilon,
                            int64_t communicator) {
    Communicator& ranks = *reinterpret_cast<Communicator*>(communicator);
    const at::Tensor values = precise(x);
    const auto [local_variance, local_mean] = at::var_mean(values, all_but_channels(x), /*correction=*/0, false);
    double count = static_cast<double>(x.numel() / x.size(1));
    std::vector<double> means = numbers(local_mean), variances = numbers(local_variance);
    combine_statistics(ranks, count, means, variances);
    const at::Tensor mean = vector_like(values, means), variance = vector_like(values, variances);
    running_mean.mul_(1 - momentum).add_(mean, momentum);
    // `count` is a mean over the ranks, the number of values is `size` times that.
    const double n = count * ranks.size();
    running_variance.mul_(1 - momentum).add_(variance, momentum * n / (n - 1));
    const at::Tensor inverse = (variance + epsilon).rsqrt();
    const at::Tensor normal = (values - along_axis(mean, 1, x.dim())) * along_axis(inverse, 1, x.dim());
    ctx->save_for_backward({normal, gamma, inverse});
    ctx->saved_data["communicator"] = communicator;
    return (normal * along_axis(gamma, 1, x.dim()) + along_axis(beta, 1, x.dim())).to(x.scalar_type());
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    Communicator& ranks = *reinterpret_cast<Communicator*>(ctx->saved_data["communicator"].toInt());
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &normal = saved[0], &gamma = saved[1], &inverse = saved[2];
    const at::Tensor grad = precise(grads[0]);
    const std::vector<int64_t> axes = all_but_channels(grad);
    const at::Tensor sum = grad.sum(axes), product = (grad * normal).sum(axes);
    double count = static_cast<double>(grad.numel() / grad.size(1));
    std::vector<double> sums = numbers(sum), products = numbers(product);
    combine_sums(ranks, count, sums, products);
    const auto wide = [&](const at::Tensor& vector) { return along_axis(vector, 1, grad.dim()); };
    const at::Tensor x =
        (grad - wide(vector_like(grad, sums) / count) - normal * wide(vector_like(grad, products) / count)) *
        wide(gamma * inverse);
    return {x.to(grads[0].scalar_type()), product, sum, {}, {}, {}, {}, {}};
  }
};

}  // namespace

void combine_statistics(Communicator& communicator, double& count, std::vector<double>& mean,
                        std::vector<double>& variance) {
  // In double the square of the mean may be taken away again.
  for (size_t i = 0; i < mean.size(); ++i) {
    variance[i] = count * (variance[i] + mean[i] * mean[i]);
    mean[i] *= count;
  }
  mean_over_ranks(communicator, count, mean, variance);
  for (size_t i = 0; i < mean.size(); ++i) {
    mean[i] /= count;
    variance[i] = std::max(variance[i] / count - mean[i] * mean[i], 0.0);
  }
}

void combine_sums(Communicator& communicator, double& count, std::vector<double>& first, std::vector<double>& second) {
  mean_over_ranks(communicator, count, first, second);
}

at::Tensor sync_batch_norm(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                           const at::Tensor& running_mean, const at::Tensor& running_variance, double momentum,
                           double epsilon, Communicator& communicator) {
  OCTET_CHECK(x.dim() >= 2);
  return Normalize::apply(x, gamma, beta, running_mean, running_variance, momentum, epsilon,
                          static_cast<int64_t>(reinterpret_cast<intptr_t>(&communicator)));
}

}  // namespace octet::train
