#include "app/method_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/bias_correction.h"
#include "app/engine_build.h"
#include "base/cpu_features.h"
#include "base/log.h"
#include "engine/executor.h"
#include "passes/pipelines.h"
#include "passes/place_fake_quant.h"
#include "report/progress.h"
#include "tasks/image_graph.h"

namespace octet::app {
namespace {

using quant::CalibrationMethod;
using quant::WeightMethod;

constexpr int64_t kImages = 100;
constexpr double kWorthLeaving = 0.5;  // the first of several, in dB
constexpr double kNoNoise = 200;       // dB
constexpr size_t kCorrected = 2;       // the best so many are tried with bias correction

// An engine and what it gives out.
class Runner {
 public:
  Runner(const ir::Graph& network, const std::vector<int64_t>& shape)
      : plan_(std::make_shared<const engine::Plan>(
            build_engine(network, {.input_shape = shape, .isa = default_isa(), .dump_passes = {}}))),
        executor_(plan_, {.threads = available_cpus()}) {
    for (const int id : plan_->outputs) {
      outputs.emplace_back(static_cast<size_t>(plan_->buffers[static_cast<size_t>(id)].elements()));
      pointers_.push_back(outputs.back().data());
    }
  }

  void run(const float* images) { executor_.run(&images, pointers_.data()); }

  std::vector<std::vector<float>> outputs;  // of the latest run

 private:
  std::shared_ptr<const engine::Plan> plan_;
  engine::Executor executor_;
  std::vector<float*> pointers_;
};

struct Trial {
  MethodChoice choice;
  double sqnr_db = 0;  // mean over the outputs

  std::string text() const {
    std::string out = schema::enum_name(choice.activations.method);
    const double weight = choice.activations.clipping_weight;
    if (choice.activations.method == CalibrationMethod::kMse && weight > 1)
      out += str(" with a clipping_weight of ", weight);
    if (choice.weights.method == WeightMethod::kMse) out += ", weights by mse";
    if (!choice.bias_shifts.empty()) out += ", biases corrected";
    return out;
  }
};

double mean_ratio_db(const std::vector<double>& signal, const std::vector<double>& noise) {
  double sum = 0;
  int counted = 0;
  for (size_t i = 0; i < signal.size(); ++i) {
    if (signal[i] <= 0) continue;
    sum += noise[i] > 0 ? std::min(kNoNoise, 10 * std::log10(signal[i] / noise[i])) : kNoNoise;
    ++counted;
  }
  return counted > 0 ? sum / counted : 0;
}

// Without what lies behind the outputs.
ir::Graph network_alone(const ir::Graph& graph) {
  ir::Graph out = tasks::image_graph(graph);
  out.program = nullptr;
  return out;
}

double squared(double v) {
  return v * v;
}

double squared_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += squared(double{a[i]} - b[i]);
  return sum;
}

std::string in_db(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f dB", value);
  return text;
}

// What the float network gives out on each image: kept from one round to the next where it is small.
class FloatOutputs {
 public:
  FloatOutputs(const ir::Graph& network, const std::vector<int64_t>& shape) : network_(network, shape) {
    for (const std::vector<float>& output : network_.outputs) elements_ += output.size();
  }

  size_t count() const { return network_.outputs.size(); }

  // Of the images of `step`, the steps of a round counted from 0. Valid until the next call.
  const std::vector<std::vector<float>>& of(size_t step, const float* images) {
    if (step < kept_.size()) return kept_[step];
    network_.run(images);
    if (step == kept_.size() && (step + 1) * elements_ <= kMostKept) return kept_.emplace_back(network_.outputs);
    return network_.outputs;
  }

 private:
  static constexpr size_t kMostKept = size_t{16} << 20;  // numbers: 64 MiB

  Runner network_;
  size_t elements_ = 0;
  std::vector<std::vector<std::vector<float>>> kept_;
};

class Chooser {
 public:
  // UserError where the engine lacks something.
  Chooser(const ir::Graph& placed, const quant::CalibrationSet& observed, data::Loader& loader)
      : placed_(network_alone(placed)), observed_(observed), loader_(loader) {
    const data::ImageShape image = loader.image_shape();
    const data::NetworkInput input = tasks::image_input(placed_);
    at_a_time_ = std::max<int64_t>(1, input.batch);
    shape_ = input.shape(at_a_time_, image.channels, image.height, image.width);
    ir::Graph plain = network_alone(placed_);
    passes::remove_fake_quant(plain);
    truth_ = std::make_unique<FloatOutputs>(plain, shape_);
  }

  std::vector<Trial> try_all(const std::vector<MethodChoice>& choices) {
    if (choices.empty()) return {};
    std::vector<std::unique_ptr<Runner>> engines;
    for (const MethodChoice& choice : choices) engines.push_back(std::make_unique<Runner>(quantized(choice), shape_));
    const std::vector<double> ratios = sqnr_db(engines);
    std::vector<Trial> out;
    for (size_t i = 0; i < choices.size(); ++i) out.push_back({.choice = choices[i], .sqnr_db = ratios[i]});
    return out;
  }

  // The same with corrected biases.
  MethodChoice corrected(const MethodChoice& choice) {
    report::Progress progress({.label = "bias correction", .total = std::min(kImages, loader_.images_per_epoch())});
    MethodChoice out = choice;
    out.bias_shifts.clear();
    out.bias_shifts =
        bias_corrections(
            quantized(out), loader_,
            {.most_images = kImages, .progress = [&](int64_t n) { progress.update(n); }, .of_float = &of_float_})
            .shifts;
    progress.finish();
    return out;
  }

 private:
  ir::Graph quantized(const MethodChoice& choice) const {
    ir::Graph out = network_alone(placed_);
    passes::run_pipeline(out, passes::scale_passes(observed_.ranges(choice.activations), choice.weights));
    if (!choice.bias_shifts.empty()) apply_corrections(out, choice.bias_shifts);
    return out;
  }

  // Of each engine, the mean over the outputs.
  std::vector<double> sqnr_db(const std::vector<std::unique_ptr<Runner>>& engines) {
    std::vector<double> signal(truth_->count(), 0.0);
    std::vector<std::vector<double>> noise(engines.size(), signal);
    report::Progress progress({.label = "choice of a method", .total = std::min(kImages, loader_.images_per_epoch())});
    int64_t done = 0;
    size_t step = 0;
    loader_.start_epoch(0);
    while (done < kImages) {
      const std::optional<data::Batch> batch = loader_.next();
      if (!batch) break;
      const int64_t elements = batch->channels * batch->height * batch->width;
      for (int64_t i = 0; i + at_a_time_ <= batch->size && done < kImages; i += at_a_time_, done += at_a_time_) {
        const float* images = batch->images.data() + i * elements;
        const std::vector<std::vector<float>>& right = truth_->of(step++, images);
        for (size_t o = 0; o < signal.size(); ++o)
          for (const float v : right[o]) signal[o] += squared(v);
        for (size_t e = 0; e < engines.size(); ++e) {
          engines[e]->run(images);
          for (size_t o = 0; o < signal.size(); ++o) noise[e][o] += squared_distance(engines[e]->outputs[o], right[o]);
        }
        progress.update(done + at_a_time_);
      }
    }
    progress.finish();
    std::vector<double> ratios;
    for (const std::vector<double>& of_outputs : noise) ratios.push_back(mean_ratio_db(signal, of_outputs));
    return ratios;
  }

  ir::Graph placed_;
  const quant::CalibrationSet& observed_;
  data::Loader& loader_;
  int64_t at_a_time_ = 1;
  std::vector<int64_t> shape_;
  std::unique_ptr<FloatOutputs> truth_;
  FloatMeans of_float_;
};

// The best of `trials`; the first stays unless another is much better.
Trial best_of(const std::vector<Trial>& trials) {
  const Trial* best = &trials[0];
  std::string all;
  for (const Trial& trial : trials) {
    const double least = best == &trials[0] ? kWorthLeaving : 0;
    if (trial.sqnr_db - best->sqnr_db > least) best = &trial;
    all += str(all.empty() ? "" : "; ", trial.text(), ": ", in_db(trial.sqnr_db));
  }
  log_info("signal to noise of the outputs by ", all);
  return *best;
}

MethodChoice choose(Chooser& chooser, const MethodChoice& options, bool may_correct) {
  const auto with = [&](CalibrationMethod method, double clipping_weight) {
    MethodChoice out = options;
    out.activations.method = method, out.activations.clipping_weight = clipping_weight;
    return out;
  };
  std::vector<Trial> trials = chooser.try_all({with(CalibrationMethod::kMse, 1), with(CalibrationMethod::kMse, 5),
                                               with(CalibrationMethod::kMse, 20), with(CalibrationMethod::kMax, 1)});
  if (may_correct) {
    std::vector<Trial> best_first = trials;
    std::ranges::stable_sort(best_first, std::greater{}, &Trial::sqnr_db);
    std::vector<MethodChoice> corrected;
    for (size_t i = 0; i < kCorrected; ++i) {
      MethodChoice choice = chooser.corrected(best_first[i].choice);
      if (!choice.bias_shifts.empty()) corrected.push_back(std::move(choice));
    }
    for (const Trial& trial : chooser.try_all(corrected)) trials.push_back(trial);
  }
  const Trial best = best_of(trials);
  if (best.choice.weights.method == WeightMethod::kMse) return best.choice;
  MethodChoice weights_too = best.choice;
  weights_too.weights.method = WeightMethod::kMse;
  if (!best.choice.bias_shifts.empty()) weights_too = chooser.corrected(weights_too);
  return best_of({best, chooser.try_all({weights_too})[0]}).choice;
}

}  // namespace

MethodChoice choose_method(const ir::Graph& placed, const quant::CalibrationSet& observed, const MethodChoice& options,
                           data::Loader& loader, bool may_correct) {
  try {
    Chooser chooser(placed, observed, loader);
    return choose(chooser, options, may_correct);
  } catch (const UserError& e) {
    log_debug("no method is chosen by its network, as the engine cannot run that: ", e.what());
  }
  MethodChoice plain = options;
  plain.activations.method = CalibrationMethod::kMse, plain.activations.clipping_weight = 1;
  return plain;
}

}  // namespace octet::app
