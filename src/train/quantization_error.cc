#include "train/quantization_error.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "ir/axes.h"
#include "ir/query.h"
#include "train/calibration_run.h"
#include "train/constants.h"
#include "train/executor.h"
#include "train/fake_quant.h"
#include "train/ops_common.h"
#include "train/step.h"

namespace octet::train {
namespace {

// Sums over elements, of one tensor in the float network (x) and another (y).
struct Energy {
  double signal = 0, noise = 0, product = 0, other = 0;

  void add(const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor a = x.to(at::kDouble), b = y.to(at::kDouble);
    signal += a.square().sum().item<double>();
    other += b.square().sum().item<double>();
    product += (a * b).sum().item<double>();
    noise += (a - b).square().sum().item<double>();
  }
  double db() const {
    if (noise <= 0) return kNoNoise;
    return signal > 0 ? std::min(kNoNoise, 10 * std::log10(signal / noise)) : -kNoNoise;
  }
  double cosine() const { return signal > 0 && other > 0 ? product / std::sqrt(signal * other) : signal == other; }
};

// Of several outputs the mean share of noise.
double db_of(const std::vector<Energy>& outputs) {
  double share = 0;
  for (const Energy& e : outputs) share += e.signal > 0 ? e.noise / e.signal : e.noise > 0;
  share /= static_cast<double>(outputs.size());
  return share > 0 ? std::min(kNoNoise, -10 * std::log10(share)) : kNoNoise;
}

// Normal numbers of the shape of an output, those of an image the same in whatever batch it comes.
at::Tensor draw(const at::Tensor& like, int64_t images, int64_t first_image) {
  const at::Tensor out = at::empty_like(like);
  const auto fill = [](const at::Tensor& part, int64_t seed) {
    part.normal_(0, 1, at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed)));
  };
  if (out.dim() > 0 && out.size(0) == images) {
    for (int64_t i = 0; i < images; ++i) fill(out[i], first_image + i);
  } else {
    fill(out, first_image);
  }
  return out;
}

struct Quantizer {
  at::Tensor scale;
  FakeQuantOptions options;

  at::Tensor operator()(const at::Tensor& x) const { return fake_quantize(x, scale, options, at::kFloat); }
  double clipped(const at::Tensor& x) const {
    const at::Tensor s = along_axis(scale.reshape({-1}), options.axis, x.dim()),
                     z = along_axis(options.zero_point.to(at::kFloat).reshape({-1}), options.axis, x.dim());
    const at::Tensor code = at::round(x / s) + z;
    return ((code < options.qmin).logical_or_(code > options.qmax)).to(at::kDouble).sum().item<double>();
  }
};

Quantizer quantizer_of(const ir::Node& node) {
  Quantizer q{.scale = to_torch(*node.input(1)->constant).to(at::kFloat)};
  if (q.scale.numel() > 1 && node.input(0)->type.shape)
    q.options.axis =
        static_cast<int64_t>(ir::normal_axis(node, node.get_int("axis"), node.input(0)->type.shape->size()));
  q.options.qmin = static_cast<int32_t>(node.get_int("qmin"));
  q.options.qmax = static_cast<int32_t>(node.get_int("qmax"));
  q.options.zero_point = to_torch(*node.input(2)->constant);
  return q;
}

class Meter {
 public:
  Meter(const ir::Graph& graph, bool each_alone)
      : each_alone_(each_alone), whole_(without_quantization(graph)), quantized_(graph) {
    for (const auto& node : graph.nodes()) {
      if (!ir::is_quantizer(node.get()) || node->get_string("state") == ir::kObserving) continue;
      QuantizerError e{
          .quantizer = node->name, .tensor = node->input(0)->name, .of_weights = node->input(0)->is_constant()};
      for (const ir::Node* reader : node->output()->users)
        if (std::find(e.readers.begin(), e.readers.end(), reader->name) == e.readers.end())
          e.readers.push_back(reader->name);
      outputs_.push_back(node->output()->name);
      errors_.push_back(std::move(e));
      quantizers_.push_back(quantizer_of(*node));
      if (errors_.back().of_weights) add_own(errors_.size() - 1, to_torch(*node->input(0)->constant).to(at::kFloat));
    }
    require(!errors_.empty(), "graph '", graph.name,
            "' has no quantizers whose errors could be measured; calibrate it first");
    isolated_.assign(errors_.size(), std::vector<Energy>(graph.outputs().size()));
    fisher_ = isolated_;
    whole_.set_batch_norm_frozen(true);  // also where there are gradients
    all_.resize(graph.outputs().size());
  }

  int64_t size() const { return static_cast<int64_t>(errors_.size()); }

  void add(const at::Tensor& images, const std::function<void(int64_t)>& progress) {
    std::map<std::string, at::Tensor> values;
    whole_.set_tap([&](const ir::Value& value, const at::Tensor& x) { values[value.name] = x; }, outputs_);
    const std::vector<at::Tensor> expected = whole_.forward({images}, Mode::kEval);
    whole_.set_tap({});
    for (size_t i = 0; i < errors_.size(); ++i)
      if (!errors_[i].of_weights) add_own(i, values.at(outputs_[i]));
    quantized_.set_tap(
        [&](const ir::Value& value, const at::Tensor& y) { cumulative_[value.name].add(values.at(value.name), y); },
        outputs_);
    add(all_, expected, quantized_.forward({images}, Mode::kEval));
    quantized_.set_tap({});
    add_fisher(images, values, expected);
    if (!each_alone_) {
      if (progress) progress(size());
      return;
    }
    for (size_t i = 0; i < errors_.size(); ++i) {
      whole_.set_override(outputs_[i], [&](const at::Tensor& x) { return quantizers_[i](x); });
      add(isolated_[i], expected, whole_.forward({images}, Mode::kEval));
      whole_.set_override(outputs_[i], {});
      if (progress) progress(static_cast<int64_t>(i) + 1);
    }
  }

  QuantizationErrors result(int64_t images) {
    for (size_t i = 0; i < errors_.size(); ++i) {
      QuantizerError& e = errors_[i];
      const Own& own = own_[i];
      e.own_db = own.energy.db();
      e.clipped = own.elements > 0 ? own.clipped / own.elements : 0;
      const Energy& cumulative = e.of_weights ? own.energy : cumulative_[outputs_[i]];
      e.cumulative_db = cumulative.db();
      e.cosine = cumulative.cosine();
      if (each_alone_) e.isolated_db = db_of(isolated_[i]);
      e.fisher_db = db_of(fisher_[i]);
    }
    std::stable_sort(errors_.begin(), errors_.end(), [](const QuantizerError& a, const QuantizerError& b) {
      return a.isolated_db.value_or(a.fisher_db) < b.isolated_db.value_or(b.fisher_db);
    });
    return {.images = images, .output_db = db_of(all_), .quantizers = std::move(errors_)};
  }

 private:
  struct Own {
    Energy energy;
    double clipped = 0, elements = 0;
  };

  void add_own(size_t i, const at::Tensor& x) {
    own_.resize(std::max(own_.size(), i + 1));
    own_[i].energy.add(x, quantizers_[i](x));
    own_[i].clipped += quantizers_[i].clipped(x);
    own_[i].elements += static_cast<double>(x.numel());
  }
  // Squared errors of what is quantized by squared gradients. These are of zeros added there, as what they are added to
  // may have none.
  void add_fisher(const at::Tensor& images, const std::map<std::string, at::Tensor>& values,
                  const std::vector<at::Tensor>& expected) {
    std::vector<at::Tensor> zeros, errors;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const at::Tensor& x = values.at(outputs_[i]);
      errors.push_back(quantizers_[i](x) - x);
    }
    for (const std::string& output : outputs_) {
      zeros.push_back(at::zeros_like(values.at(output)).requires_grad_());
      whole_.set_override(output, [zero = zeros.back()](const at::Tensor& x) { return x + zero; });
    }
    const std::vector<at::Tensor> made = whole_.forward({images}, Mode::kTrain);
    for (const std::string& output : outputs_) whole_.set_override(output, {});
    for (size_t o = 0; o < made.size(); ++o) {
      const double signal = expected[o].to(at::kDouble).square().sum().item<double>();
      const torch::autograd::variable_list gradients =
          made[o].requires_grad()
              ? torch::autograd::grad({made[o]}, zeros, {draw(made[o].detach(), images.size(0), images_)}, true, false,
                                      true)
              : torch::autograd::variable_list(zeros.size());
      for (size_t i = 0; i < zeros.size(); ++i) {
        fisher_[i][o].signal += signal;
        if (!gradients[i].defined()) continue;
        fisher_[i][o].noise += (gradients[i].to(at::kDouble) * errors[i]).square().sum().item<double>();
      }
    }
    images_ += images.size(0);
  }

  static void add(std::vector<Energy>& to, const std::vector<at::Tensor>& x, const std::vector<at::Tensor>& y) {
    for (size_t i = 0; i < to.size(); ++i) to[i].add(x[i], y[i]);
  }

  bool each_alone_;
  Executor whole_, quantized_;
  std::vector<std::string> outputs_;  // of the quantizers
  std::vector<QuantizerError> errors_;
  std::vector<Quantizer> quantizers_;
  std::vector<Own> own_;
  std::map<std::string, Energy> cumulative_;
  std::vector<std::vector<Energy>> isolated_, fisher_;
  int64_t images_ = 0;  // so far
  std::vector<Energy> all_;
};

}  // namespace

QuantizationErrors measure_quantization_errors(const ir::Graph& graph, data::Loader& loader, int64_t images,
                                               const std::function<void(int64_t, int64_t)>& progress, bool each_alone) {
  Meter meter(graph, each_alone);
  int64_t done = 0;
  loader.start_epoch(0);
  const int64_t of = meter.size() * std::max<int64_t>(1, std::min(loader.images_per_epoch(), images));
  while (done < images) {
    const std::optional<data::Batch> batch = loader.next();
    if (!batch) break;
    meter.add(images_of(*batch), [&](int64_t quantizers) {
      if (progress) progress(std::min(of, done * meter.size() + quantizers * batch->size), of);
    });
    done += batch->size;
  }
  require(done > 0, "there is no image to measure quantizers by");
  return meter.result(done);
}

}  // namespace octet::train
