// What `octet bench` can time: an engine in this process, or a rival in a process of its own.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/bench/rival_process.h"
#include "base/cpu_features.h"
#include "base/cpu_wait.h"
#include "engine/executor.h"

namespace octet::app {

// One turn: at least this many runs, and at least this long.
struct BenchWindow {
  int runs = 1;
  double milliseconds = 0;
};

enum class BenchMode {
  kLatency,     // one inference at a time on all threads
  kThroughput,  // one inference on each thread
};

class Contender {
 public:
  virtual ~Contender() = default;
  // Milliseconds per inference after a warm-up: of every run (latency), or one number, the length of the turn over the
  // inferences done in it (throughput).
  virtual std::vector<double> turn(const BenchWindow& window) = 0;
  // Nanoseconds, up to now, that its threads were ready to run and had no CPU; nothing where nobody says.
  virtual std::optional<int64_t> waited() const { return std::nullopt; }
};

// Dense float tensors for the inputs (uniform in [0, 1), fixed seed) and outputs of a plan.
class PlanTensors {
 public:
  explicit PlanTensors(const engine::Plan& plan);
  const float* const* inputs() const { return inputs_.data(); }
  float* const* outputs() const { return outputs_.data(); }
  std::span<float> input(size_t index) { return memory_[index]; }

 private:
  std::vector<std::vector<float>> memory_;
  std::vector<const float*> inputs_;
  std::vector<float*> outputs_;
};

// Fills the first input before each run, which is part of the run.
using Feed = std::function<void(std::span<float> input)>;

class EngineLatency : public Contender {
 public:
  EngineLatency(std::shared_ptr<const engine::PreparedPlan> plan, int threads, Feed feed = {});
  std::vector<double> turn(const BenchWindow& window) override;
  std::optional<int64_t> waited() const override { return cpu_wait_of_threads(); }
  void run() {
    if (feed_) feed_(tensors.input(0));
    executor.run(tensors.inputs(), tensors.outputs());
  }

  engine::Executor executor;
  PlanTensors tensors;

 private:
  Feed feed_;
};

// One single-threaded context on each CPU; they share weights and kernels.
class EngineThroughput : public Contender {
 public:
  // `make_feed`: the feed of each context; empty: none.
  EngineThroughput(const std::shared_ptr<const engine::PreparedPlan>& plan, int threads,
                   const std::function<Feed()>& make_feed = {});
  std::vector<double> turn(const BenchWindow& window) override;
  std::optional<int64_t> waited() const override { return waited_; }

 private:
  std::vector<std::unique_ptr<EngineLatency>> contexts_;
  std::optional<int64_t> waited_;  // of the threads of all turns
};

class RivalContender : public Contender {
 public:
  explicit RivalContender(const RivalProcess::Options& options) : process(options) {}
  std::vector<double> turn(const BenchWindow& window) override {
    return process.turn(window.runs, window.milliseconds);
  }

  RivalProcess process;
};

// What the environment of a rival must hold so that it uses no stronger instruction set than `isa`; empty when `isa` is
// the best of this machine, and nothing needs to be held back.
struct RivalCap {
  bool needed = false;
  bool possible = false;
  std::vector<std::string> environment;  // "NAME=VALUE"
};
RivalCap rival_cap(const std::string& peer, Isa isa);

}  // namespace octet::app
