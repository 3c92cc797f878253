#include "app/accuracy_search.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octet::app {
namespace {

class Search {
 public:
  Search(const ir::Graph& network, const quant::QuantOptions& options, double drop, bool higher_is_better,
         const AccuracyTools& tools)
      : drop_(drop), tools_(tools) {
    const Measured whole = tools.measure(network);
    result_.float_score = whole.score, result_.float_ms = whole.ms;
    result_.higher_is_better = higher_is_better;
    result_.options = options;
  }

  AccuracySearch run() {
    try_step("calibrated", result_.options, true);
    boost("quant.equalize: exact", result_.options.equalize == quant::Equalization::kNo,
          [](quant::QuantOptions& o) { o.equalize = quant::Equalization::kExact; });
    boost("quant.bias_correction: true", !result_.options.bias_correction,
          [](quant::QuantOptions& o) { o.bias_correction = true; });
    boost("quant.adaround: {iterations: 1000}", result_.options.adaround.iterations == 0,
          [](quant::QuantOptions& o) { o.adaround.iterations = 1000; });
    if (!result_.holds) leave_layers_in_float();
    return std::move(result_);
  }

 private:
  bool better(double a, double b) const { return result_.higher_is_better ? a > b : a < b; }
  bool holds(double score) const {
    const double lost = result_.higher_is_better ? result_.float_score - score : score - result_.float_score;
    return lost <= drop_ + 1e-9;
  }

  // Whether the bar holds with these options. `take`: what they make is the result from now on, whatever it scores;
  // else where it scores better.
  bool try_step(const std::string& what, const quant::QuantOptions& options, bool take) {
    ir::Graph graph = tools_.quantize(options);
    const Measured measured = tools_.measure(graph);
    AccuracyStep step{.what = what, .score = measured.score, .ms = measured.ms};
    step.kept = take || better(measured.score, result_.score);
    if (step.kept) {
      result_.options = options;
      result_.graph = std::move(graph);
      result_.score = measured.score, result_.ms = measured.ms;
      result_.holds = holds(measured.score);
    }
    result_.steps.push_back(step);
    if (tools_.progress) tools_.progress(step);
    return holds(measured.score);
  }

  void boost(const std::string& what, bool is_new, const std::function<void(quant::QuantOptions&)>& change) {
    if (result_.holds || !is_new) return;
    quant::QuantOptions options = result_.options;
    change(options);
    try_step(what, options, false);
  }

  void leave_layers_in_float() {
    const std::vector<std::string> layers = tools_.rank(result_.graph);
    const quant::QuantOptions all = result_.options;
    const auto with_float = [&](size_t count) {
      quant::QuantOptions options = all;
      for (size_t i = 0; i < count; ++i) options.placement.exclude.push_back(quant::node_called(layers[i]));
      return options;
    };
    const auto attempt = [&](size_t count, bool take) {
      return try_step(str(count, count == 1 ? " layer" : " layers", " in float"), with_float(count), take);
    };
    // The last one is left: a network without a quantizer is none of ours.
    size_t too_few = 0, enough = 0;
    for (size_t count = 1; enough == 0 && count < layers.size();) {
      if (attempt(count, false)) {
        enough = count;
      } else {
        too_few = count;
        if (count + 1 == layers.size()) return;
        count = std::min(2 * count, layers.size() - 1);
      }
    }
    while (enough - too_few > 1) {
      const size_t middle = (enough + too_few) / 2;
      if (attempt(middle, false)) {
        enough = middle;
      } else {
        too_few = middle;
      }
    }
    // The smallest number that holds is the result, whatever else scored.
    if (enough == 0) return;
    const std::string what = str(enough, enough == 1 ? " layer" : " layers", " in float");
    const auto last = std::find_if(result_.steps.rbegin(), result_.steps.rend(),
                                   [&](const AccuracyStep& step) { return step.what == what; });
    result_.options = with_float(enough);
    result_.graph = tools_.quantize(result_.options);
    result_.score = last->score, result_.ms = last->ms;
    result_.holds = true;
    for (AccuracyStep& step : result_.steps)
      if (step.what.find("in float") != std::string::npos) step.kept = step.what == what;
  }

  double drop_;
  const AccuracyTools& tools_;
  AccuracySearch result_;
};

}  // namespace

AccuracySearch search_accuracy(const ir::Graph& network, const quant::QuantOptions& options, double drop,
                               bool higher_is_better, const AccuracyTools& tools) {
  return Search(network, options, drop, higher_is_better, tools).run();
}

}  // namespace octet::app
