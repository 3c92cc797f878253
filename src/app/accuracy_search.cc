#include "app/accuracy_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace octet::app {
namespace {

class Search {
 public:
  Search(const ir::Graph& network, const quant::QuantOptions& options, const SearchBounds& bounds,
         bool higher_is_better, const AccuracyTools& tools)
      : bounds_(bounds), tools_(tools) {
    OCTET_CHECK(bounds.drop || bounds.has_budget() || bounds.methods);
    const Measured whole = tools.measure(network);
    result_.float_score = whole.score, result_.float_ms = whole.ms, result_.float_bytes = whole.bytes;
    result_.higher_is_better = higher_is_better;
    result_.options = options;
  }

  AccuracySearch run() {
    try_step(bounds_.methods ? text_of(result_.options.calibration.method) : "calibrated", result_.options, true);
    if (bounds_.methods) try_methods();
    if (!bounds_.drop && !bounds_.has_budget()) return std::move(result_);
    // With everything in INT8 it is as fast and as small as it gets.
    if (!fits(result_.ms, result_.bytes)) return std::move(result_);
    boost("quant.equalize: exact", result_.options.equalize == quant::Equalization::kNo,
          [](quant::QuantOptions& o) { o.equalize = quant::Equalization::kExact; });
    boost("quant.bias_correction: empirical", result_.options.bias_correction == quant::BiasCorrection::kNo,
          [](quant::QuantOptions& o) { o.bias_correction = quant::BiasCorrection::kEmpirical; });
    boost("quant.gptq: {images: 500}", may_round(), [](quant::QuantOptions& o) { o.gptq.images = 500; });
    // For ten times as long, where that did not help.
    boost("quant.adaround: {iterations: 1000}", may_round(),
          [](quant::QuantOptions& o) { o.adaround.iterations = 1000; });
    if (!is_enough()) leave_layers_in_float();
    return std::move(result_);
  }

 private:
  static std::string text_of(quant::CalibrationMethod method) {
    return "quant.calibration.method: " + std::string(schema::enum_name(method));
  }
  // All of them: which is best depends on the network, and none costs time later.
  void try_methods() {
    const quant::CalibrationMethod own = result_.options.calibration.method;
    for (const auto& [method, name] : enum_names(quant::CalibrationMethod())) {
      if (method == own || method == quant::CalibrationMethod::kSqnr) continue;  // which tries some of the others
      quant::QuantOptions options = result_.options;
      options.calibration.method = method;
      try_step(text_of(method), options, false);
    }
  }

  // A spec with analytic bias correction takes neither (quant/options.cc), so none that a search writes has them.
  bool may_round() const {
    return !result_.options.rounds_by_results() && result_.options.bias_correction != quant::BiasCorrection::kAnalytic;
  }

  bool better(double a, double b) const { return result_.higher_is_better ? a > b : a < b; }
  bool is_accurate(double score) const {
    const double lost = result_.higher_is_better ? result_.float_score - score : score - result_.float_score;
    return !bounds_.drop || lost <= *bounds_.drop + 1e-9;
  }
  bool fits(double ms, int64_t bytes) const {
    return (!bounds_.ms || ms <= *bounds_.ms) && (!bounds_.bytes || bytes <= *bounds_.bytes);
  }
  // Nothing more is to be tried. A budget alone is there to be used, as long as there is something to gain.
  bool is_enough() const { return result_.holds && (bounds_.drop || !better(result_.float_score, result_.score)); }

  struct Tried {
    quant::QuantOptions options;
    ir::Graph graph;
    Measured measured;
  };

  // The step, not kept yet. `rounded`: whose weights it takes over; null: none.
  Tried attempt(const std::string& what, const quant::QuantOptions& options, const ir::Graph* rounded = nullptr) {
    Tried out{.options = options,
              .graph = rounded ? tools_.quantize_as(options, *rounded) : tools_.quantize(options),
              .measured = {}};
    out.measured = tools_.measure(out.graph);
    result_.steps.push_back(
        {.what = what, .score = out.measured.score, .ms = out.measured.ms, .bytes = out.measured.bytes, .kept = false});
    return out;
  }
  void keep(Tried tried) {
    const Measured& m = tried.measured;
    result_.options = std::move(tried.options);
    result_.graph = std::move(tried.graph);
    result_.score = m.score, result_.ms = m.ms, result_.bytes = m.bytes;
    result_.holds = is_accurate(m.score) && fits(m.ms, m.bytes);
  }
  void tell(bool kept) {
    result_.steps.back().kept = kept;
    if (tools_.progress) tools_.progress(result_.steps.back());
  }

  // `take`: what they make is the result from now on, whatever it scores; else where it scores better.
  void try_step(const std::string& what, const quant::QuantOptions& options, bool take) {
    Tried tried = attempt(what, options);
    const bool kept = take || better(tried.measured.score, result_.score);
    if (kept) keep(std::move(tried));
    tell(kept);
  }

  void boost(const std::string& what, bool is_new, const std::function<void(quant::QuantOptions&)>& change) {
    if (is_enough() || !is_new) return;
    quant::QuantOptions options = result_.options;
    change(options);
    try_step(what, options, false);
  }

  // The number of layers that is looked for is the smallest that is accurate, or else the largest that fits. Whether a
  // number is beyond that is asked of 1, 2, 4 ... and then by bisection.
  void leave_layers_in_float() {
    const quant::QuantOptions all = result_.options;
    // Weights that AdaRound or GPTQ has put on their grid lie there without an error, and would rank as harmless.
    quant::QuantOptions nearest = all;
    nearest.adaround.iterations = 0, nearest.gptq.images = 0;
    const bool rounds = all.rounds_by_results();
    const std::vector<std::string> layers = rounds ? tools_.rank(tools_.quantize(nearest)) : tools_.rank(result_.graph);
    const size_t first_step = result_.steps.size();
    std::map<size_t, Tried> tried;
    const auto name = [](size_t count) { return str(count, count == 1 ? " layer" : " layers", " in float"); };
    const auto with_float = [&](size_t count) {
      quant::QuantOptions options = all;
      for (size_t i = 0; i < count; ++i) options.placement.exclude.push_back(quant::node_called(layers[i]));
      return options;
    };
    const auto is_beyond = [&](size_t count) {
      Tried made = attempt(name(count), with_float(count), rounds ? &result_.graph : nullptr);
      const Tried& t = tried.emplace(count, std::move(made)).first->second;
      tell(false);
      return bounds_.drop ? is_accurate(t.measured.score) : !fits(t.measured.ms, t.measured.bytes);
    };
    // The last one is left: a network without a quantizer is none of ours.
    size_t within = 0, beyond = 0;
    for (size_t count = 1; beyond == 0 && count < layers.size();) {
      if (is_beyond(count)) {
        beyond = count;
      } else {
        within = count;
        if (count + 1 == layers.size()) break;
        count = std::min(2 * count, layers.size() - 1);
      }
    }
    while (beyond > 0 && beyond - within > 1) {
      const size_t middle = (beyond + within) / 2;
      (is_beyond(middle) ? beyond : within) = middle;
    }
    size_t best = 0;
    if (bounds_.drop && beyond > 0) {
      best = beyond;
    } else {
      for (const auto& [count, t] : tried)
        if (fits(t.measured.ms, t.measured.bytes) &&
            better(t.measured.score, best > 0 ? tried.at(best).measured.score : result_.score))
          best = count;
    }
    if (best == 0) return;
    if (!rounds) {
      keep(std::move(tried.at(best)));
      for (size_t i = first_step; i < result_.steps.size(); ++i)
        result_.steps[i].kept = result_.steps[i].what == name(best);
      return;
    }
    for (;; ++best) {
      Tried anew = attempt(name(best) + ", rounded anew", with_float(best));
      const bool kept = !bounds_.drop || is_accurate(anew.measured.score) || best + 1 >= layers.size();
      if (kept) keep(std::move(anew));
      tell(kept);
      if (kept) return;
    }
  }

  SearchBounds bounds_;
  const AccuracyTools& tools_;
  AccuracySearch result_;
};

}  // namespace

AccuracySearch search_accuracy(const ir::Graph& network, const quant::QuantOptions& options, const SearchBounds& bounds,
                               bool higher_is_better, const AccuracyTools& tools) {
  return Search(network, options, bounds, higher_is_better, tools).run();
}

}  // namespace octet::app
