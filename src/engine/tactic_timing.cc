// The stopwatch behind choose_tactics_by_timing.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>

#include "engine/executor.h"
#include "engine/steps_conv.h"
#include "engine/tactics.h"

namespace octet::engine {
namespace {

constexpr int kPasses = 3;
constexpr int kMinRuns = 3, kMaxRuns = 20;  // in each of them

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Interval {
  float low = -1, high = 1;
};

// What an input's codes can say, if it is quantized.
Interval range_of_input(const Plan& plan, int id) {
  for (const Step& step : plan.steps) {
    if (step.kind != "quantize" || step.inputs[0] != id) continue;
    const Buffer& codes = plan.buffers[step.outputs[0]];
    return {static_cast<float>(codes.code_min - codes.zero_point) * codes.scale,
            static_cast<float>(codes.code_max - codes.zero_point) * codes.scale};
  }
  return {};
}

// Smooth random planes with a little noise: as in pictures, most of what pixels differ in is where they are. Some
// kernels' time depends on that (avx2/bytes/pointwise.h).
void fill_like_picture(const Buffer& buffer, Interval range, std::mt19937& random, std::vector<float>& values) {
  constexpr int64_t kCells = 8;
  const size_t rank = buffer.shape.size();
  const int64_t w = rank > 0 ? buffer.shape[rank - 1] : 1, h = rank > 1 ? buffer.shape[rank - 2] : 1;
  std::uniform_real_distribution<float> anywhere(range.low, range.high);
  std::uniform_real_distribution<float> noise(-0.02f * (range.high - range.low), 0.02f * (range.high - range.low));
  float corners[kCells + 1][kCells + 1];
  for (size_t at = 0; at < values.size();) {
    for (auto& row : corners)
      for (float& corner : row) corner = anywhere(random);
    for (int64_t y = 0; y < h; ++y) {
      const int64_t row = y * kCells / h;
      const float down = static_cast<float>(y * kCells % h) / static_cast<float>(h);
      for (int64_t x = 0; x < w; ++x, ++at) {
        const int64_t column = x * kCells / w;
        const float right = static_cast<float>(x * kCells % w) / static_cast<float>(w);
        const float top = std::lerp(corners[row][column], corners[row][column + 1], right);
        const float bottom = std::lerp(corners[row + 1][column], corners[row + 1][column + 1], right);
        values[at] = std::lerp(top, bottom, down) + noise(random);
      }
    }
  }
}

// Inputs, filled as if they were pictures, and outputs of a plan.
struct Tensors {
  explicit Tensors(const Plan& plan) {
    std::mt19937 random(1);
    for (int id : plan.inputs) {
      storage.emplace_back(static_cast<size_t>(plan.buffers[id].elements()));
      fill_like_picture(plan.buffers[id], range_of_input(plan, id), random, storage.back());
    }
    for (int id : plan.outputs) storage.emplace_back(static_cast<size_t>(plan.buffers[id].elements() * 2));
    for (size_t i = 0; i < storage.size(); ++i) {
      if (i < plan.inputs.size())
        inputs.push_back(storage[i].data());
      else
        outputs.push_back(storage[i].data());
    }
  }
  std::vector<std::vector<float>> storage;
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
};

// Fastest time of every step, in ns, over all times that it was measured.
struct Times {
  explicit Times(size_t steps) : steps(steps, std::numeric_limits<int64_t>::max()) {}

  std::vector<int64_t> steps;
  int runs = 0;

  // Steadier than the fastest run, in which every step would have to be lucky at once.
  int64_t whole() const { return std::accumulate(steps.begin(), steps.end(), int64_t{0}); }
};

void time_plan(const Plan& plan, Tensors& tensors, const TacticOptions& options, double limit_seconds, Times& times) {
  // The plan outlives the executor.
  Executor executor(std::shared_ptr<const Plan>(&plan, [](const Plan*) {}),
                    {.threads = options.threads, .isa = options.isa});
  executor.run(tensors.inputs.data(), tensors.outputs.data());
  executor.set_profiling(true);
  const auto start = std::chrono::steady_clock::now();
  for (int runs = 0; runs < kMinRuns || (runs < kMaxRuns && seconds_since(start) < limit_seconds); ++runs) {
    executor.clear_profile();
    executor.run(tensors.inputs.data(), tensors.outputs.data());
    for (size_t i = 0; i < times.steps.size(); ++i)
      times.steps[i] = std::min(times.steps[i], executor.step_nanoseconds()[i]);
    ++times.runs;
  }
}

// "tiles2x2 amx_int8/rows": amx_int8.
std::string_view isa_of(const std::string& tactic) {
  const std::string_view text = std::string_view(tactic).substr(tactic.find(' ') + 1);
  return text.substr(0, text.find('/'));
}

// One kernel for every step, and how the whole network fared with them.
struct Choice {
  explicit Choice(const Plan& plan) : plan(plan), times(plan.steps.size()) {}

  Plan plan;
  int changed = 0;  // steps that left their estimate
  Times times;
};

using Candidates =
    std::vector<std::vector<TacticCandidate>>;  // of every step, the estimate first; empty: nothing to choose

// What each round measured: the first, second, third ... candidate of all steps.
std::vector<Times> time_candidates(const Plan& plan, const Candidates& candidates, Tensors& tensors,
                                   const TacticOptions& options) {
  size_t rounds = 1;
  for (const std::vector<TacticCandidate>& n : candidates) rounds = std::max(rounds, n.size());
  std::vector<Times> times(rounds, Times(plan.steps.size()));
  Plan trial = plan;
  const auto start = std::chrono::steady_clock::now();
  const double share = options.limit_seconds / static_cast<double>(kPasses * rounds);
  // Every candidate is measured in each pass: the speed of a machine changes within seconds.
  for (int pass = 0; pass < kPasses && (pass == 0 || seconds_since(start) < options.limit_seconds); ++pass)
    for (size_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < plan.steps.size(); ++i)
        if (!candidates[i].empty())
          trial.steps[i].tactic = candidates[i][std::min(round, candidates[i].size() - 1)].name;
      time_plan(trial, tensors, options, share, times[round]);
    }
  return times;
}

// Every step's fastest candidate, where it needs less than `bar` of the estimate's time; memory counts as time.
Choice fastest_candidates(const Plan& plan, const Candidates& candidates, const std::vector<Times>& times, double bar,
                          bool same_isa) {
  std::vector<std::vector<TacticCost>> costs(plan.steps.size());
  std::vector<std::vector<size_t>> rounds(plan.steps.size());  // that measured them
  for (size_t i = 0; i < plan.steps.size(); ++i)
    for (size_t round = 0; round < candidates[i].size(); ++round) {
      if (same_isa && isa_of(candidates[i][round].name) != isa_of(candidates[i][0].name)) continue;
      TacticCost cost = candidates[i][round].estimate;
      cost.microseconds = static_cast<double>(times[round].steps[i]) / 1000;
      costs[i].push_back(cost);
      rounds[i].push_back(round);
    }
  const std::vector<size_t> chosen = choose_within_memory(costs, weights_mib(plan), bar);
  Choice choice(plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (rounds[i].empty()) continue;
    const std::string& name = candidates[i][rounds[i][chosen[i]]].name;
    if (name == plan.steps[i].tactic) continue;
    choice.plan.steps[i].tactic = name;
    ++choice.changed;
  }
  return choice;
}

// The tactic without how threads share it: "winograd4x4 avx512_vnni/rows": "winograd4x4 avx512_vnni".
std::string_view kernel_of(const std::string& tactic) {
  return std::string_view(tactic).substr(0, tactic.find('/'));
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

// How threads share one step matters to the steps before and after it, which then take less or more from the other's
// cache; while the candidates were measured those had changed as well. So, last, every third step shares its work the
// other way at once, and keeps to that if it and its neighbors together need less time. Compared is what was measured
// one after the other: the speed of a machine changes within seconds.
void refine_splits(Plan& plan, const Candidates& candidates, Tensors& tensors, const TacticOptions& options) {
  constexpr int kPhases = 3, kMostPasses = 5;
  // Of the neighbors' time, with few passes and with more, and of the whole network's.
  constexpr double kStrictBar = 0.95, kBar = 0.99, kVeto = 1.005;
  const size_t count = plan.steps.size();
  const auto other_split = [&](size_t i) -> const std::string* {
    const std::string& now = plan.steps[i].tactic;
    for (const TacticCandidate& candidate : candidates[i])
      if (candidate.name != now && kernel_of(candidate.name) == kernel_of(now)) return &candidate.name;
    return nullptr;
  };
  std::vector<Plan> trials(kPhases, plan);
  int flipped = 0;
  for (size_t i = 0; i < count; ++i)
    if (const std::string* name = other_split(i)) trials[flipped++ % kPhases].steps[i].tactic = *name;
  if (flipped == 0) return;
  const auto start = std::chrono::steady_clock::now();
  const double limit = options.limit_seconds / 2, share = limit / (3 * (kPhases + 1));
  const auto measured = [&](const Plan& some) {
    Times times(count);
    time_plan(some, tensors, options, share, times);
    return times;
  };
  const auto about = [&](const Times& t, size_t i) {
    const size_t first = i > 0 ? i - 1 : 0, end = std::min(i + 2, count);
    return static_cast<double>(std::accumulate(t.steps.begin() + first, t.steps.begin() + end, int64_t{0}));
  };
  std::vector<std::vector<double>> ratios(count);
  for (int pass = 0; pass < kMostPasses && (pass == 0 || seconds_since(start) < limit); ++pass) {
    const Times now = measured(plan);
    for (const Plan& trial : trials) {
      const Times other = measured(trial);
      for (size_t i = 0; i < count; ++i)
        if (trial.steps[i].tactic != plan.steps[i].tactic) ratios[i].push_back(about(other, i) / about(now, i));
    }
  }
  Plan refined = plan;
  for (size_t i = 0; i < count; ++i)
    if (!ratios[i].empty() && median(ratios[i]) < (ratios[i].size() < 3 ? kStrictBar : kBar))
      refined.steps[i].tactic = *other_split(i);
  std::vector<double> whole;
  for (int pass = 0; pass < kMostPasses && (pass == 0 || seconds_since(start) < 1.5 * limit); ++pass) {
    const auto now = static_cast<double>(measured(plan).whole());
    whole.push_back(static_cast<double>(measured(refined).whole()) / now);
  }
  if (median(whole) < kVeto) plan = std::move(refined);
}

}  // namespace

TimedTactics choose_tactics_by_timing(Plan& plan, const TacticOptions& given) {
  const auto start = std::chrono::steady_clock::now();
  TacticOptions options = given;
  if (options.threads <= 0) options.threads = available_cpus();
  options.limit_seconds = given.limit_seconds / 2;  // for the candidates, and as much for the choices
  choose_tactics_by_model(plan, options);
  Candidates candidates(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].kind == kConvKind)
      candidates[i] = conv_candidates(plan, plan.steps[i], kernels::kernels(options.isa), options.threads);
  Tensors tensors(plan);
  const std::vector<Times> times = time_candidates(plan, candidates, tensors, options);
  // The fastest candidate of each step alone is not always best for all: units that one kernel wakes slow the next one,
  // and whoever writes a tensor has it in its cache. So several choices run as a whole, from no change to every gain.
  std::vector<Choice> choices{Choice(plan)};
  for (const bool same_isa : {true, false})
    for (const double bar : {0.97, 0.9, 0.8}) {
      Choice choice = fastest_candidates(plan, candidates, times, bar, same_isa);
      if (choice.changed > 0) choices.push_back(std::move(choice));
    }
  const auto second_half = std::chrono::steady_clock::now();
  const double share = options.limit_seconds / static_cast<double>(kPasses * choices.size());
  for (int pass = 0; pass < kPasses && (pass == 0 || seconds_since(second_half) < options.limit_seconds); ++pass)
    for (Choice& choice : choices) time_plan(choice.plan, tensors, options, share, choice.times);
  TimedTactics out;
  for (const Times& t : times) out.runs += t.runs;
  for (const Choice& choice : choices) out.runs += choice.times.runs;
  Choice& best = *std::ranges::min_element(choices, {}, [](const Choice& c) { return c.times.whole(); });
  out.before_ms = static_cast<double>(choices[0].times.whole()) / 1e6;
  refine_splits(best.plan, candidates, tensors, options);
  out.after_ms = static_cast<double>(best.times.whole()) / 1e6;
  for (size_t i = 0; i < plan.steps.size(); ++i) out.changed += best.plan.steps[i].tactic != plan.steps[i].tactic;
  plan = std::move(best.plan);
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace octet::engine
