#include "train/bias_correction.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "ir/query.h"
#include "train/calibration_run.h"
#include "train/executor.h"
#include "train/step.h"

namespace octet::train {
namespace {

bool is_corrected(const ir::Node& node) {
  const bool has_bias = node.kind == ir::OpKind::kConv || node.kind == ir::OpKind::kConvTranspose ||
                        (node.kind == ir::OpKind::kGemm && node.get_float("beta") == 1.0f);
  if (!has_bias || !node.input(1)->producer || !ir::is_quantizer(node.input(1)->producer)) return false;
  return ir::constant_behind(node.input(1)) && (!node.has_input(2) || node.input(2)->is_constant());
}

// Means over images and places; channels are axis 1 of feature maps and of matrices alike.
at::Tensor channel_means(const at::Tensor& values) {
  std::vector<int64_t> axes = {0};
  for (int64_t axis = 2; axis < values.dim(); ++axis) axes.push_back(axis);
  return values.to(at::kDouble).mean(axes);
}

}  // namespace

std::map<std::string, std::vector<double>> bias_corrections(const ir::Graph& graph, data::Loader& loader,
                                                            const std::function<void(int64_t)>& progress,
                                                            Communicator& communicator) {
  std::vector<std::string> values;                // outputs of the nodes, in the order in which they are computed
  std::map<std::string, std::string> node_names;  // by these
  for (const auto& node : graph.nodes())
    if (is_corrected(*node)) {
      values.push_back(node->output()->name);
      node_names[values.back()] = node->name;
    }
  if (values.empty()) return {};
  Executor whole(without_quantization(graph)), quantized(graph);
  std::map<std::string, at::Tensor> wanted, sums;
  whole.set_tap([&](const ir::Value& value, const at::Tensor& x) { wanted[value.name] = channel_means(x); }, values);
  int64_t batch_size = 0;
  for (const std::string& name : values)
    quantized.set_override(name, [&, name](const at::Tensor& x) {
      const at::Tensor missing = wanted.at(name) - channel_means(x);
      at::Tensor& sum = sums[name];
      sum = sum.defined() ? sum + missing * batch_size : missing * batch_size;
      std::vector<int64_t> along(static_cast<size_t>(x.dim()), 1);
      along[1] = -1;
      return x + missing.to(x.scalar_type()).view(along);
    });
  at::Tensor images = at::zeros({}, at::kDouble);
  loader.start_epoch(0);
  while (const std::optional<data::Batch> batch = loader.next()) {
    batch_size = batch->size;
    const at::Tensor pixels = images_of(*batch);
    whole.forward({pixels}, Mode::kEval);
    quantized.forward({pixels}, Mode::kEval);
    images += batch->size;
    if (progress) progress(images.item<int64_t>());
  }
  std::vector<at::Tensor> all = {images};
  for (const std::string& name : values)
    all.push_back(sums.count(name) ? sums.at(name) : at::zeros_like(wanted[name], at::kDouble));
  communicator.all_reduce(all, Reduce::kMean);
  require(all[0].item<double>() > 0, "there is no image to correct biases with");
  std::map<std::string, std::vector<double>> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const at::Tensor mean = (all[i + 1] / all[0]).contiguous();
    out[node_names[values[i]]] = {mean.const_data_ptr<double>(), mean.const_data_ptr<double>() + mean.numel()};
  }
  return out;
}

}  // namespace octet::train
