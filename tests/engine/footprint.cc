// footprint ENGINE.octet [--runs 7] [--max-load-ms 30] [--max-memory 1.3] [--isa NAME]: the time from the start of
// loading to the end of the first inference (smallest of several processes, the file in the page cache), and the memory
// that engine and context take, against the bytes of weights and working memory. Exit status 1 beyond the limits.
// ENGINE.octet may be "--heavy": an engine of 28 MB made for the occasion.
#include <octet/engine.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "engine/conv_chain_plan.h"
#include "engine/engine_file.h"
#include "engine/resident_memory.h"

namespace {

struct Measured {
  double load_ms = 0, first_ms = 0, cpu_ms = 0;  // load: until the context exists
  int64_t grown_kb = 0, before_kb = 0;
};

double cpu_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

Measured load_and_run(const std::string& path, const octet::ContextOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  Measured m;
  m.before_kb = resident_kb();
  const double cpu = cpu_ms();
  const auto start = Clock::now();
  const octet::Engine engine = octet::Engine::load(path);
  octet::Context context = engine.create_context(options);
  m.load_ms = ms(Clock::now() - start);
  std::vector<std::vector<float>> tensors;
  tensors.reserve(engine.inputs().size() + engine.outputs().size());
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (const auto& t : engine.inputs()) inputs.push_back(tensors.emplace_back(t.size(), 0.5f).data());
  for (const auto& t : engine.outputs()) outputs.push_back(tensors.emplace_back(t.size()).data());
  context.run(inputs, outputs);
  m.first_ms = ms(Clock::now() - start);
  m.cpu_ms = cpu_ms() - cpu;
  m.grown_kb = resident_kb() - m.before_kb;
  return m;
}

// In a process of its own, so that every measurement starts from nothing.
bool measure(const std::string& path, const octet::ContextOptions& options, Measured* m) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const Measured mine = load_and_run(path, options);
      ::_exit(::write(ends[1], &mine, sizeof(mine)) == sizeof(mine) ? 0 : 1);
    } catch (const octet::Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      ::_exit(1);
    }
  }
  ::close(ends[1]);
  const bool read = ::read(ends[0], m, sizeof(*m)) == sizeof(*m);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return read && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  int runs = 7;
  double max_load_ms = 30, max_memory = 1.3;
  octet::ContextOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (a == "--runs")
      runs = std::atoi(value), ++i;
    else if (a == "--max-load-ms")
      max_load_ms = std::atof(value), ++i;
    else if (a == "--max-memory")
      max_memory = std::atof(value), ++i;
    else if (a == "--isa")
      options.isa = value, ++i;
    else
      path = a;
  }
  const bool heavy = path == "--heavy";
  if (heavy) {
    // In another process: its memory would count.
    path = "/tmp/octet_footprint_" + std::to_string(::getpid()) + ".octet";
    if (const pid_t child = ::fork(); child == 0) {
      octet::engine::save_engine(octet::testing::heavy_plan(), path);
      ::_exit(0);
    } else {
      ::waitpid(child, nullptr, 0);
    }
  }
  Measured best;
  for (int i = 0; i < runs; ++i) {
    Measured m;
    if (!measure(path, options, &m)) return 1;
    if (i == 0 || m.first_ms < best.first_ms) best = m;
  }
  // The plan is read only now: until here this process is as small as any that uses the engine.
  const auto plan = octet::engine::load_engine(path);
  const double needed = static_cast<double>(plan->constants->bytes().size() + plan->arena_bytes) / 1024;
  const double ratio = static_cast<double>(best.grown_kb) / needed;
  std::printf(
      "load %.1f ms, load to first inference %.1f ms (%.1f ms of CPU time), resident +%lld KiB on %lld KiB, "
      "%.2f x weights and working memory (%.0f KiB)\n",
      best.load_ms, best.first_ms, best.cpu_ms, static_cast<long long>(best.grown_kb),
      static_cast<long long>(best.before_kb), ratio, needed);
  if (heavy) ::unlink(path.c_str());
  return best.first_ms <= max_load_ms && ratio <= max_memory ? 0 : 1;
}
