// The stopwatch behind choose_tactics_by_timing.
#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

#include "engine/executor.h"
#include "engine/steps_conv.h"
#include "engine/tactics.h"

namespace octet::engine {
namespace {

constexpr double kWorthwhile = 0.97;  // of the estimate's time
constexpr int kMinRuns = 3, kMaxRuns = 40;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Inputs and outputs of a plan, filled with random numbers in [-1, 1].
struct Tensors {
  explicit Tensors(const Plan& plan) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int id : plan.inputs) {
      storage.emplace_back(static_cast<size_t>(plan.buffers[id].elements()));
      for (float& v : storage.back()) v = uniform(random);
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

// Fastest time of every step, and of the whole network, in ns.
struct Times {
  std::vector<int64_t> steps;
  int64_t whole = std::numeric_limits<int64_t>::max();
  int runs = 0;
};

Times time_plan(const Plan& plan, Tensors& tensors, const TacticOptions& options, double limit_seconds) {
  // The plan outlives the executor.
  Executor executor(std::shared_ptr<const Plan>(&plan, [](const Plan*) {}),
                    {.threads = options.threads, .isa = options.isa});
  Times times{.steps = std::vector<int64_t>(plan.steps.size(), std::numeric_limits<int64_t>::max())};
  executor.run(tensors.inputs.data(), tensors.outputs.data());
  executor.set_profiling(true);
  const auto start = std::chrono::steady_clock::now();
  while (times.runs < kMinRuns || (times.runs < kMaxRuns && seconds_since(start) < limit_seconds)) {
    executor.clear_profile();
    executor.run(tensors.inputs.data(), tensors.outputs.data());
    int64_t whole = 0;
    for (size_t i = 0; i < times.steps.size(); ++i) {
      const int64_t ns = executor.step_nanoseconds()[i];
      times.steps[i] = std::min(times.steps[i], ns);
      whole += ns;
    }
    times.whole = std::min(times.whole, whole);
    ++times.runs;
  }
  return times;
}

}  // namespace

TimedTactics choose_tactics_by_timing(Plan& plan, const TacticOptions& given) {
  const auto start = std::chrono::steady_clock::now();
  TacticOptions options = given;
  if (options.threads <= 0) options.threads = available_cpus();
  choose_tactics_by_model(plan, options);
  std::vector<std::vector<std::string>> names(plan.steps.size());
  size_t rounds = 1;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind != kConvKind) continue;
    names[i] = conv_tactic_names(plan, plan.steps[i], kernels::kernels(options.isa), options.threads);
    rounds = std::max(rounds, names[i].size());
  }
  Tensors tensors(plan);
  TimedTactics out;
  std::vector<int64_t> best(plan.steps.size(), 0);
  std::vector<size_t> choice(plan.steps.size(), 0);
  // Rounds, and a last one that compares the choice as a whole with the estimates.
  const double share = options.limit_seconds / static_cast<double>(rounds + 2);
  Plan trial = plan;
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < plan.steps.size(); ++i)
      if (!names[i].empty()) trial.steps[i].tactic = names[i][std::min(round, names[i].size() - 1)];
    const Times times = time_plan(trial, tensors, options, share);
    out.runs += times.runs;
    if (round == 0) out.before_ms = static_cast<double>(times.whole) / 1e6;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (names[i].size() <= round) continue;
      const double bar = choice[i] == 0 ? kWorthwhile : 1;
      if (round > 0 && static_cast<double>(times.steps[i]) >= bar * static_cast<double>(best[i])) continue;
      best[i] = times.steps[i];
      choice[i] = round;
    }
  }
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (!names[i].empty()) trial.steps[i].tactic = names[i][choice[i]];
  const Times with_choice = time_plan(trial, tensors, options, share), with_model = time_plan(plan, tensors, options, share);
  out.runs += with_choice.runs + with_model.runs;
  out.before_ms = std::min(out.before_ms, static_cast<double>(with_model.whole) / 1e6);
  out.after_ms = static_cast<double>(with_choice.whole) / 1e6;
  if (out.after_ms < out.before_ms) {
    for (size_t i = 0; i < plan.steps.size(); ++i) out.changed += choice[i] != 0;
    plan = std::move(trial);
  } else {
    out.after_ms = out.before_ms;
  }
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace octet::engine
