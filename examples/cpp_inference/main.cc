// Runs an engine file with Octet's C++ interface: one inference as fast as possible, then as many as possible.
#include <octet/engine.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void print(const char* what, const std::vector<octet::TensorInfo>& tensors) {
  for (const octet::TensorInfo& t : tensors) {
    std::printf("%s %s:", what, t.name.c_str());
    for (int64_t d : t.shape) std::printf(" %lld", static_cast<long long>(d));
    std::printf("\n");
  }
}

std::vector<std::vector<float>> memory_for(const std::vector<octet::TensorInfo>& tensors, float value) {
  std::vector<std::vector<float>> out;
  for (const octet::TensorInfo& t : tensors) out.emplace_back(static_cast<size_t>(t.size()), value);
  return out;
}

// The shortest time for one inference: all threads work on it.
void latency(const octet::Engine& engine, int threads) {
  octet::ContextOptions options;
  options.threads = threads;
  octet::Context context = engine.create_context(options);
  auto inputs = memory_for(engine.inputs(), 0.5f), outputs = memory_for(engine.outputs(), 0.0f);
  // Bound once: the engine reads and writes this memory in place.
  for (size_t i = 0; i < inputs.size(); ++i) context.bind_input(static_cast<int>(i), inputs[i].data());
  for (size_t i = 0; i < outputs.size(); ++i) context.bind_output(static_cast<int>(i), outputs[i].data());
  double best = 1e30;
  for (int run = 0; run < 20; ++run) {
    const auto start = Clock::now();
    context.run();
    best = std::min(best, milliseconds_since(start));
  }
  std::printf("latency: %.3f ms with %d thread(s) of %s\n", best, context.threads(), context.isa());
  std::printf("first output: %g\n", static_cast<double>(outputs[0][0]));
}

// The most inferences a second: every core works on its own.
void throughput(const octet::Engine& engine, int workers) {
  constexpr int kRequests = 64;
  octet::ThroughputOptions options;
  options.workers = workers;
  octet::Throughput pool = engine.create_throughput(options);
  auto inputs = memory_for(engine.inputs(), 0.5f);
  std::vector<std::vector<std::vector<float>>> outputs(kRequests, memory_for(engine.outputs(), 0.0f));
  std::vector<const float*> in;
  for (const auto& tensor : inputs) in.push_back(tensor.data());
  const auto start = Clock::now();
  for (auto& request : outputs) {
    std::vector<float*> out;
    for (auto& tensor : request) out.push_back(tensor.data());
    pool.submit(in, out);
  }
  pool.wait_all();
  std::printf("throughput: %.1f inferences/s with %d worker(s)\n", 1000 * kRequests / milliseconds_since(start),
              pool.workers());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL.octet [THREADS]\n", argv[0]);
    return 2;
  }
  try {
    const octet::Engine engine = octet::Engine::load(argv[1]);
    print("input", engine.inputs());
    print("output", engine.outputs());
    const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
    latency(engine, threads);
    throughput(engine, threads);
  } catch (const octet::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
