// soak [--seconds 5] [--contexts 8] [ENGINE.octet ...]: contexts of the same engines run at the same time, each in a
// thread of its own; now and then one is thrown away and made again. Every run must give the same bits, and the memory
// of the process must not grow. Without files: two small engines of the tests, which have a step of every kind.
#include <octet/engine.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_file.h"
#include "engine/resident_memory.h"
#include "engine/wide_plan.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // their own bookkeeping grows
#else
constexpr bool kSanitized = false;
#endif

namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<std::vector<float>>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Case {
  octet::Engine engine;
  Tensors inputs, expected;
};

Tensors memory_for(const std::vector<octet::TensorInfo>& infos) {
  Tensors out;
  for (const octet::TensorInfo& info : infos) out.emplace_back(static_cast<size_t>(info.size()));
  return out;
}

// Bytes, so that a NaN equals itself.
bool same_bits(const Tensors& a, const Tensors& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
  return true;
}

void bind_tensors(octet::Context& context, const Case& c, Tensors& outputs) {
  for (size_t i = 0; i < c.inputs.size(); ++i) context.bind_input(static_cast<int>(i), c.inputs[i].data());
  for (size_t i = 0; i < outputs.size(); ++i) context.bind_output(static_cast<int>(i), outputs[i].data());
}

Case make_case(octet::Engine engine) {
  Case c{std::move(engine), {}, {}};
  c.inputs = memory_for(c.engine.inputs());
  c.expected = memory_for(c.engine.outputs());
  uint32_t random = 1;
  for (auto& tensor : c.inputs)
    for (float& v : tensor) {
      random = random * 1664525 + 1013904223;
      v = static_cast<float>(random >> 8) / (1 << 24);
    }
  octet::ContextOptions options;
  options.threads = 1;
  octet::Context context = c.engine.create_context(options);
  bind_tensors(context, c, c.expected);
  context.run();
  return c;
}

octet::Engine engine_of(const octet::engine::Plan& plan) {
  const std::string bytes = octet::engine::engine_file_bytes(plan);
  return octet::Engine::from_memory(bytes.data(), bytes.size(), plan.name);
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 5;
  int contexts = 8;
  std::vector<Case> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc)
      seconds = std::atof(argv[++i]);
    else if (argument == "--contexts" && i + 1 < argc)
      contexts = std::atoi(argv[++i]);
    else
      cases.push_back(make_case(octet::Engine::load(argument)));
  }
  if (cases.empty()) {
    cases.push_back(make_case(engine_of(octet::testing::small_plan())));
    cases.push_back(make_case(engine_of(octet::testing::WidePlan::make())));
  }

  const auto start = Clock::now();
  std::atomic<bool> stop{false};
  std::atomic<int64_t> runs{0}, wrong{0}, made{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < contexts; ++t)
    callers.emplace_back([&, t] {
      for (int round = 0; !stop; ++round) {
        const Case& c = cases[(t + round) % cases.size()];
        octet::ContextOptions options;
        options.threads = 1 + (t + round / 2) % 2;
        octet::Context context = c.engine.create_context(options);
        ++made;
        Tensors outputs = memory_for(c.engine.outputs());
        bind_tensors(context, c, outputs);
        // About two seconds with each context.
        for (const auto begin = Clock::now(); !stop && seconds_since(begin) < 2;) {
          for (auto& tensor : outputs) std::memset(tensor.data(), 0xee, tensor.size() * sizeof(float));
          context.run();
          ++runs;
          wrong += !same_bits(outputs, c.expected);
        }
      }
    });

  // Memory is measured from a quarter of the time on, when everything has been used once; a growing process grows until
  // the end, whereas an allocator finds its level.
  int64_t early = 0, late = 0;
  while (seconds_since(start) < seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double part = seconds_since(start) / seconds;
    if (part > 0.25 && part < 0.5) early = std::max(early, resident_kb());
    if (part > 0.75) late = std::max(late, resident_kb());
  }
  stop = true;
  for (std::thread& t : callers) t.join();
  std::printf("%lld runs in %d threads with %lld contexts in %.1f s, %lld wrong, resident memory %lld -> %lld KiB\n",
              static_cast<long long>(runs), contexts, static_cast<long long>(made), seconds_since(start),
              static_cast<long long>(wrong), static_cast<long long>(early), static_cast<long long>(late));
  if (wrong > 0) return 1;
  if (!kSanitized && late > early + early / 20 + 1024) {
    std::fprintf(stderr, "resident memory grew\n");
    return 1;
  }
  return 0;
}
