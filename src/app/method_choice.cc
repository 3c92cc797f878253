#include "app/method_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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
  std::unique_ptr<Runner> engine = {};
  std::vector<double> noise = {};  // of each output
  double sqnr_db = 0;              // mean over the outputs

  std::string text() const {
    std::string out = schema::enum_name(choice.activations.method);
    const double weight = choice.activations.clipping_weight;
    if (choice.activations.method == CalibrationMethod::kMse && weight > 1)
      out += str(" with a clipping_weight of ", weight);
    if (choice.weights.method == WeightMethod::kMse) out += ", weights by mse";
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

std::string in_db(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f dB", value);
  return text;
}

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
    truth_ = std::make_unique<Runner>(plain, shape_);
  }

  // The best; the first stays unless another is much better.
  MethodChoice best_of(const std::vector<MethodChoice>& choices) {
    std::vector<Trial> trials;
    for (const MethodChoice& choice : choices) {
      ir::Graph network = network_alone(placed_);
      passes::run_pipeline(network, passes::scale_passes(observed_.ranges(choice.activations), choice.weights));
      trials.push_back({.choice = choice, .engine = std::make_unique<Runner>(network, shape_)});
    }
    run(trials);
    const Trial* best = &trials[0];
    std::string all;
    for (const Trial& trial : trials) {
      const double least = best == &trials[0] ? kWorthLeaving : 0;
      if (trial.sqnr_db - best->sqnr_db > least) best = &trial;
      all += str(all.empty() ? "" : "; ", trial.text(), ": ", in_db(trial.sqnr_db));
    }
    log_info("signal to noise of the outputs by ", all);
    return best->choice;
  }

 private:
  // All engines on each image.
  void run(std::vector<Trial>& trials) {
    std::vector<double> signal(truth_->outputs.size(), 0.0);
    for (Trial& trial : trials) trial.noise.assign(signal.size(), 0.0);
    report::Progress progress({.label = "choice of a method", .total = std::min(kImages, loader_.images_per_epoch())});
    int64_t done = 0;
    loader_.start_epoch(0);
    while (done < kImages) {
      const std::optional<data::Batch> batch = loader_.next();
      if (!batch) break;
      const int64_t elements = batch->channels * batch->height * batch->width;
      for (int64_t i = 0; i + at_a_time_ <= batch->size && done < kImages; i += at_a_time_, done += at_a_time_) {
        run(batch->images.data() + i * elements, signal, trials);
        progress.update(done);
      }
    }
    progress.finish();
    for (Trial& trial : trials) trial.sqnr_db = mean_ratio_db(signal, trial.noise);
  }

  void run(const float* images, std::vector<double>& signal, std::vector<Trial>& trials) {
    truth_->run(images);
    for (size_t o = 0; o < signal.size(); ++o)
      for (const float v : truth_->outputs[o]) signal[o] += squared(v);
    for (Trial& trial : trials) {
      trial.engine->run(images);
      for (size_t o = 0; o < signal.size(); ++o)
        for (size_t k = 0; k < truth_->outputs[o].size(); ++k)
          trial.noise[o] += squared(double{trial.engine->outputs[o][k]} - truth_->outputs[o][k]);
    }
  }

  ir::Graph placed_;
  const quant::CalibrationSet& observed_;
  data::Loader& loader_;
  int64_t at_a_time_ = 1;
  std::vector<int64_t> shape_;
  std::unique_ptr<Runner> truth_;
};

}  // namespace

MethodChoice choose_method(const ir::Graph& placed, const quant::CalibrationSet& observed, const MethodChoice& options,
                           data::Loader& loader) {
  const auto with = [&](CalibrationMethod method, double clipping_weight) {
    MethodChoice out = options;
    out.activations.method = method, out.activations.clipping_weight = clipping_weight;
    return out;
  };
  const MethodChoice plain = with(CalibrationMethod::kMse, 1);
  try {
    Chooser chooser(placed, observed, loader);
    const MethodChoice best = chooser.best_of(
        {plain, with(CalibrationMethod::kMse, 5), with(CalibrationMethod::kMse, 20), with(CalibrationMethod::kMax, 1)});
    if (best.weights.method == WeightMethod::kMse) return best;
    MethodChoice weights_too = best;
    weights_too.weights.method = WeightMethod::kMse;
    return chooser.best_of({best, weights_too});
  } catch (const UserError& e) {
    log_debug("no method is chosen by its network, as the engine cannot run that: ", e.what());
    return plain;
  }
}

}  // namespace octet::app
