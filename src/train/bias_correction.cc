#include "train/bias_correction.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "passes/shift_biases.h"
#include "train/calibration_run.h"
#include "train/executor.h"
#include "train/step.h"

namespace octet::train {
namespace {

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
  for (const ir::Node* node : passes::nodes_to_correct(graph)) {
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
  int64_t images = 0;
  loader.start_epoch(0);
  while (const std::optional<data::Batch> batch = loader.next()) {
    batch_size = batch->size;
    const at::Tensor pixels = images_of(*batch);
    whole.forward({pixels}, Mode::kEval);
    quantized.forward({pixels}, Mode::kEval);
    images += batch->size;
    if (progress) progress(images);
  }
  std::map<std::string, std::vector<double>> out;
  const auto seen = std::max<int64_t>(1, images);
  for (const std::string& name : values) {
    const at::Tensor mean = sums.count(name) ? (sums.at(name) / seen).contiguous() : at::zeros_like(wanted[name]);
    out[node_names[name]] = {mean.const_data_ptr<double>(), mean.const_data_ptr<double>() + mean.numel()};
  }
  share_corrections(out, images, communicator);
  return out;
}

void share_corrections(std::map<std::string, std::vector<double>>& shifts, int64_t images, Communicator& communicator) {
  if (shifts.empty()) return;  // on every worker: nothing of the network is quantized, so nobody has run an image
  std::vector<at::Tensor> all = {at::full({}, static_cast<double>(images), at::kDouble)};
  for (auto& [node, shift] : shifts)
    all.push_back(at::from_blob(shift.data(), {std::ssize(shift)}, at::kDouble) * static_cast<double>(images));
  communicator.all_reduce(all, Reduce::kSum);
  const double of_all = all[0].item<double>();
  require(of_all > 0, "there is no image to correct biases with");
  size_t i = 1;
  for (auto& [node, shift] : shifts) {
    const at::Tensor mean = (all[i++] / of_all).contiguous();
    shift.assign(mean.const_data_ptr<double>(), mean.const_data_ptr<double>() + mean.numel());
  }
}

}  // namespace octet::train
