#include "app/bench/contender.h"

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "base/cpu_limits.h"
#include "base/error.h"

namespace octet::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kWarmUp = std::chrono::milliseconds(50);

double milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace

PlanTensors::PlanTensors(const engine::Plan& plan) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int id : plan.inputs) {
    std::vector<float>& input =
        memory_.emplace_back(static_cast<size_t>(plan.buffers[static_cast<size_t>(id)].elements()));
    for (float& v : input) v = uniform(random);
    inputs_.push_back(input.data());
  }
  for (int id : plan.outputs) {
    // Twice the size: an output of indices has 8 bytes an element.
    const auto elements = static_cast<size_t>(plan.buffers[static_cast<size_t>(id)].elements());
    outputs_.push_back(memory_.emplace_back(elements * 2).data());
  }
}

EngineLatency::EngineLatency(std::shared_ptr<const engine::PreparedPlan> plan, int threads, Feed feed)
    : executor(plan, {.threads = threads}), tensors(plan->plan()), feed_(std::move(feed)) {}

std::vector<double> EngineLatency::turn(const BenchWindow& window) {
  for (const auto until = Clock::now() + kWarmUp; Clock::now() < until;) run();
  std::vector<double> times;
  const auto begin = Clock::now();
  for (auto start = begin;
       static_cast<int>(times.size()) < window.runs || milliseconds(start - begin) < window.milliseconds;) {
    run();
    const auto end = Clock::now();
    times.push_back(milliseconds(end - start));
    start = end;
  }
  return times;
}

EngineThroughput::EngineThroughput(const std::shared_ptr<const engine::PreparedPlan>& plan, int threads,
                                   const std::function<Feed()>& make_feed) {
  for (int i = 0; i < threads; ++i)
    contexts_.push_back(std::make_unique<EngineLatency>(plan, 1, make_feed ? make_feed() : Feed()));
}

std::vector<double> EngineThroughput::turn(const BenchWindow& window) {
  // Every context goes on until all have done their part, so none is timed alone on the machine.
  const size_t count = contexts_.size();
  const int runs_each = (window.runs + static_cast<int>(count) - 1) / static_cast<int>(count);
  const std::vector<int> cpus = allowed_cpus();
  std::vector<double> rates(count);
  std::vector<std::optional<int64_t>> waited(count);
  std::atomic<size_t> ready{0}, done{0};
  const auto work = [&](size_t index) {
    if (cpus.size() >= count) pin_this_thread(cpus[index]);
    EngineLatency& context = *contexts_[index];
    ++ready;
    for (const auto until = Clock::now() + kWarmUp; ready < count || Clock::now() < until;) context.run();
    int runs = 0;
    const auto begin = Clock::now();
    auto now = begin;
    for (bool counted = false; done < count;) {
      context.run();
      now = Clock::now();
      ++runs;
      if (!counted && runs >= runs_each && milliseconds(now - begin) >= window.milliseconds) counted = true, ++done;
    }
    rates[index] = runs / milliseconds(now - begin);
    waited[index] = cpu_wait_of_thread();
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& t : threads) t.join();
  for (const auto& w : waited)
    if (w) waited_ = waited_.value_or(0) + *w;
  double per_millisecond = 0;
  for (double rate : rates) per_millisecond += rate;
  return {1 / per_millisecond};
}

RivalCap rival_cap(const std::string& peer, Isa isa) {
  RivalCap cap{.needed = isa != supported_isas().back()};
  if (!cap.needed || peer != "openvino") return cap;
  const char* name = nullptr;
  switch (isa) {
    case Isa::kAvx512Vnni:
      name = "AVX512_CORE_VNNI";
      break;
    case Isa::kAvxVnni:
      name = "AVX2_VNNI";
      break;
    case Isa::kAvx2:
      name = "AVX2";
      break;
    default:
      return cap;
  }
  cap.possible = true;
  cap.environment = {str("ONEDNN_MAX_CPU_ISA=", name)};
  return cap;
}

}  // namespace octet::app
