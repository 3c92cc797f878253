#include "passes/channel_moments.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <unordered_map>

#include "ir/evaluate.h"
#include "ir/ops.h"
#include "ir/query.h"
#include "passes/channel_layout.h"
#include "quant/fusion_model.h"

namespace octet::passes {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

constexpr int64_t kSamples = 512;

// Of the standard normal distribution, in rising order: as many places that are equally probable, with mean 0 and
// variance 1.
const std::vector<double>& normal_places() {
  static const std::vector<double> places = [] {
    std::vector<double> out(kSamples);
    double squares = 0;
    for (int64_t k = 0; k < kSamples; ++k) {
      const double wanted = (static_cast<double>(k) + 0.5) / kSamples;
      double low = -10, high = 10;
      while (high - low > 1e-12) {
        const double middle = (low + high) / 2;
        (0.5 * std::erfc(-middle / std::numbers::sqrt2) < wanted ? low : high) = middle;
      }
      out[static_cast<size_t>(k)] = low;
      squares += low * low;
    }
    for (double& place : out) place /= std::sqrt(squares / kSamples);
    return out;
  }();
  return places;
}

// [kSamples, channels]. The order of the places is another one for each channel and tensor, so that sums of channels
// are those of independent ones, and always the same.
Tensor draw(const ChannelMoments& moments, uint32_t seed) {
  const size_t channels = moments.mean.size();
  std::mt19937 random(seed);
  std::vector<double> places = normal_places();
  std::vector<float> out(places.size() * channels);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t k = places.size() - 1; k > 0; --k) std::swap(places[k], places[random() % (k + 1)]);
    for (size_t k = 0; k < places.size(); ++k)
      out[k * channels + c] = static_cast<float>(moments.mean[c] + moments.deviation[c] * places[k]);
  }
  return Tensor::of<float>({kSamples, static_cast<int64_t>(channels)}, out);
}

std::vector<double> mean_of(const Tensor& samples) {
  const auto values = samples.values<float>();
  std::vector<double> out(static_cast<size_t>(samples.shape()[1]));
  for (size_t i = 0; i < values.size(); ++i) out[i % out.size()] += values[i];
  for (double& mean : out) mean /= kSamples;
  return out;
}

// What lies behind the channels.
Tensor with_rank(const Tensor& samples, size_t rank) {
  ir::Shape shape(std::max<size_t>(rank, 2), 1);
  shape[0] = kSamples, shape[1] = samples.shape()[1];
  return Tensor::of<float>(shape, samples.to_floats());
}

// Channels of a tensor [N, C, ...], or nothing.
std::optional<int64_t> channels_of(const Value* value) {
  const std::optional<ir::Shape>& shape = value->type.shape;
  if (!shape || shape->size() < 2 || (*shape)[1] <= 0) return std::nullopt;
  return (*shape)[1];
}

class Propagation {
 public:
  explicit Propagation(const std::map<std::string, ChannelMoments>& known) : known_(known) {}

  void add(const Node& node) {
    if (node.outputs.empty() || !node.output()) return;
    const Value* out = node.output();
    std::optional<Tensor> samples;
    if (const auto it = known_.find(out->name); it != known_.end() && !ir::is_quantizer(&node))
      samples = draw(it->second, ++drawn_);
    else
      samples = follow(node);
    if (samples && channels_of(out) == samples->shape()[1]) {
      means_[out->name] = mean_of(*samples);
      if (!out->users.empty()) samples_.insert_or_assign(out, Live{std::move(*samples), out->users.size()});
    }
    for (const Value* input : node.inputs)
      if (const auto it = samples_.find(input); it != samples_.end() && --it->second.readers == 0) samples_.erase(it);
  }

  std::map<std::string, std::vector<double>> take_means() { return std::move(means_); }

 private:
  struct Live {
    Tensor samples;
    size_t readers;  // that are still to come
  };

  const Tensor* find(const Value* value) const {
    const auto it = value ? samples_.find(value) : samples_.end();
    return it == samples_.end() ? nullptr : &it->second.samples;
  }

  std::optional<Tensor> follow(const Node& node) const {
    if (node.kind == OpKind::kGlobalAveragePool || node.kind == OpKind::kReduceMean) return over_space(node);
    if (quant::is_weighted(node)) return layer(node);
    if (node.kind == OpKind::kConcat) return joined(node);
    if (!ir::is_quantizer(&node) && ir::op_info(node.kind).has(ir::trait::kElementwise)) return element_wise(node);
    switch (node.kind) {
      case OpKind::kFakeQuantize:
      case OpKind::kDropout:
      case OpKind::kMaxPool:
      case OpKind::kAveragePool:
      case OpKind::kResize:
      case OpKind::kPad:
      case OpKind::kFlatten:
      case OpKind::kReshape:
      case OpKind::kSqueeze:
        if (const Tensor* x = find(node.input(0))) return *x;  // add() asks whether the channels are still these
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::optional<Tensor> over_space(const Node& node) const {
    const Tensor* x = find(node.input(0));
    if (!x || !quant::is_average_pool(node)) return std::nullopt;
    const std::vector<double> means = mean_of(*x);
    std::vector<float> out;
    for (int64_t k = 0; k < kSamples; ++k) out.insert(out.end(), means.begin(), means.end());
    return Tensor::of<float>(x->shape(), out);
  }

  std::optional<Tensor> joined(const Node& node) const {
    const std::optional<int64_t> channels = channels_of(node.output());
    if (!channels || node.get_int("axis") != 1) return std::nullopt;
    std::vector<float> out(static_cast<size_t>(kSamples * *channels));
    int64_t at = 0;
    for (const Value* input : node.inputs) {
      const Tensor* x = find(input);
      if (!x || at + x->shape()[1] > *channels) return std::nullopt;
      const auto values = x->values<float>();
      const int64_t width = x->shape()[1];
      for (int64_t k = 0; k < kSamples; ++k)
        std::copy_n(values.begin() + k * width, width, out.begin() + k * *channels + at);
      at += width;
    }
    return at == *channels ? std::optional(Tensor::of<float>({kSamples, at}, out)) : std::nullopt;
  }

  std::optional<Tensor> element_wise(const Node& node) const {
    std::vector<Tensor> owned;
    owned.reserve(node.inputs.size());  // pointers to them are kept
    std::vector<const Tensor*> inputs;
    bool any = false;
    for (const Value* input : node.inputs) {
      const Value* constant = ir::constant_behind(input);
      if (const Tensor* x = find(input)) {
        owned.push_back(with_rank(*x, input->type.shape->size()));
        inputs.push_back(&owned.back());
        any = true;
      } else if (!input || constant) {
        inputs.push_back(constant ? &*constant->constant : nullptr);
      } else {
        return std::nullopt;
      }
    }
    ir::MemoryBudget budget;
    const auto out = any ? ir::evaluate(node, inputs, budget) : std::nullopt;
    if (!out || out->empty()) return std::nullopt;
    const Tensor& y = out->front();
    // A constant with places of its own has no one value of a channel.
    if (y.data_type() != ir::DataType::kFloat32 || y.shape().size() < 2 || y.shape()[0] != kSamples ||
        y.size() != kSamples * y.shape()[1])
      return std::nullopt;
    return Tensor::of<float>({kSamples, y.shape()[1]}, y.to_floats());
  }

  // As if all pixels under the kernel were the same one.
  std::optional<Tensor> layer(const Node& node) const {
    const Tensor* x = find(node.input(0));
    const std::optional<ChannelLayout> weights = channel_layout(node);
    const Value* bias = node.has_input(2) ? ir::constant_behind(node.input(2)) : nullptr;
    const bool scaled =
        node.kind == OpKind::kGemm && (node.get_float("alpha") != 1.0f || node.get_float("beta") != 1.0f);
    if (!x || !weights || scaled || static_cast<int64_t>(weights->inputs()) != x->shape()[1] ||
        (node.has_input(2) && !bias))
      return std::nullopt;
    const size_t outputs = weights->outputs(), inputs = weights->inputs();
    const std::vector<float> offset = bias ? bias->constant->to_floats() : std::vector<float>(outputs, 0.0f);
    if (offset.size() != outputs) return std::nullopt;
    const std::vector<double> sums =
        sums_over_taps(*weights, ir::constant_behind(node.input(1))->constant->to_floats());
    const auto values = x->values<float>();
    std::vector<float> out(static_cast<size_t>(kSamples) * outputs);
    for (size_t k = 0; k < static_cast<size_t>(kSamples); ++k) {
      std::vector<double> y(offset.begin(), offset.end());
      for (size_t row = 0, i = 0; row < weights->rows; ++row)
        for (size_t column = 0; column < weights->columns; ++column, ++i)
          y[weights->channel(row, column, true)] += sums[i] * values[k * inputs + weights->channel(row, column, false)];
      std::copy(y.begin(), y.end(), out.begin() + static_cast<int64_t>(k * outputs));
    }
    return Tensor::of<float>({kSamples, static_cast<int64_t>(outputs)}, out);
  }

  const std::map<std::string, ChannelMoments>& known_;
  std::unordered_map<const Value*, Live> samples_;  // a wide network's would fill memory if all were kept
  std::map<std::string, std::vector<double>> means_;
  uint32_t drawn_ = 0;
};

}  // namespace

std::map<std::string, ChannelMoments> batch_norm_moments(const ir::Graph& graph) {
  std::map<std::string, ChannelMoments> out;
  for (const auto& node : graph.nodes()) {
    if (node->kind != OpKind::kBatchNormalization || node->get_int("training_mode") != 0) continue;
    if (!std::all_of(node->inputs.begin() + 1, node->inputs.end(), [](const Value* v) { return v->is_constant(); }))
      continue;
    const std::vector<float> gamma = node->input(1)->constant->to_floats(),
                             beta = node->input(2)->constant->to_floats(),
                             variance = node->input(4)->constant->to_floats();
    ChannelMoments& moments = out[node->output()->name];
    for (size_t c = 0; c < gamma.size(); ++c) {
      // Less than |gamma| where epsilon is a part of the variance: a channel that is constant stays it.
      const double of = std::max(0.0, double{variance[c]});
      moments.mean.push_back(beta[c]);
      moments.deviation.push_back(std::abs(double{gamma[c]}) * std::sqrt(of / (of + node->get_float("epsilon"))));
    }
  }
  return out;
}

std::map<std::string, std::vector<double>> channel_means(const ir::Graph& graph,
                                                         const std::map<std::string, ChannelMoments>& known) {
  Propagation propagation(known);
  for (const auto& node : graph.nodes()) propagation.add(*node);
  return propagation.take_means();
}

}  // namespace octet::passes
