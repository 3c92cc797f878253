// Whole networks: every tensor that the engine keeps has the bits of the scalar kernels, on every instruction set of
// this CPU, with 1, 2 and 3 threads, with every candidate of every convolution.
//   same_bits MODEL.onnx ...
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>

#include "base/error.h"
#include "engine/executor.h"
#include "engine/steps_conv.h"
#include "engine/tactics.h"
#include "lower/lower.h"
#include "onnx/import.h"

namespace octet {
namespace {

using Dumps = std::map<std::string, engine::TensorDump>;

struct Network {
  std::shared_ptr<const engine::Plan> plan;
  std::vector<std::vector<float>> inputs;
  std::vector<const float*> in;
};

Network load(const std::string& path) {
  Network n;
  n.plan = std::make_shared<const engine::Plan>(lower::lower(onnx::import_model(path)));
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  for (int id : n.plan->inputs) {
    n.inputs.emplace_back(static_cast<size_t>(n.plan->buffers[id].elements()));
    for (float& v : n.inputs.back()) v = normal(random);
  }
  for (const auto& input : n.inputs) n.in.push_back(input.data());
  return n;
}

Dumps run(const Network& n, const std::shared_ptr<const engine::Plan>& plan, Isa isa, int threads) {
  engine::Executor executor(plan, {.threads = threads, .isa = isa});
  std::vector<std::vector<float>> outputs;
  std::vector<float*> out;
  for (int id : plan->outputs) outputs.emplace_back(static_cast<size_t>(plan->buffers[id].elements() * 2));
  for (auto& output : outputs) out.push_back(output.data());
  Dumps dumps;
  for (engine::TensorDump& d : executor.run_and_dump(n.in.data(), out.data()))
    dumps[d.name + (d.is_codes ? "" : " (float)")] = std::move(d);
  // Steps run together in bands only in an ordinary run.
  const auto expected = outputs;
  for (auto& output : outputs) std::fill(output.begin(), output.end(), -1.0f);
  executor.run(n.in.data(), out.data());
  for (size_t i = 0; i < outputs.size(); ++i)
    require(std::memcmp(outputs[i].data(), expected[i].data(),
                        static_cast<size_t>(plan->buffers[plan->outputs[i]].elements()) * sizeof(float)) == 0,
            "output ", i, " on ", isa_name(isa), ", ", threads, " threads: run() and run_and_dump() differ");
  return dumps;
}

// Bytes compared, or an error that candidates the first tensor that differs.
int64_t compare(const Dumps& want, const Dumps& got, const std::string& what) {
  int64_t numbers = 0;
  for (const auto& [name, w] : want) {
    const auto found = got.find(name);
    require(found != got.end(), what, ": no tensor '", name, "'");
    const engine::TensorDump& g = found->second;
    for (size_t i = 0; i < w.codes.size(); ++i)
      require(w.codes[i] == g.codes[i], what, ": '", name, "' [", i, "] is ", g.codes[i], ", scalar ", w.codes[i]);
    require(w.values.size() == g.values.size() &&
                std::memcmp(w.values.data(), g.values.data(), w.values.size() * sizeof(float)) == 0,
            what, ": '", name, "' differs from scalar");
    numbers += static_cast<int64_t>(w.codes.size() + w.values.size());
  }
  return numbers;
}

void check(const std::string& path) {
  const Network n = load(path);
  const Dumps want = run(n, n.plan, Isa::kScalar, available_cpus());
  int64_t runs = 0, numbers = 0;
  for (Isa isa : supported_isas()) {
    size_t rounds = 1;
    for (size_t round = 0; round < rounds; ++round) {
      auto plan = std::make_shared<engine::Plan>(*n.plan);
      for (engine::Step& step : plan->steps) {
        if (step.kind != engine::kConvKind) continue;
        const auto candidates = engine::conv_candidates(*plan, step, kernels::kernels(isa), 2);
        rounds = std::max(rounds, candidates.size());
        step.tactic = candidates[std::min(round, candidates.size() - 1)].name;
      }
      // All thread counts with the engine's own choice, one of them in turn with the others.
      for (int threads = 1; threads <= 3; ++threads) {
        if (round > 0 && static_cast<size_t>(threads) != round % 3 + 1) continue;
        if (isa == Isa::kScalar && threads == available_cpus()) continue;
        numbers = compare(want, run(n, plan, isa, threads),
                          str(path, " on ", isa_name(isa), ", ", threads, " threads, candidate ", round));
        ++runs;
      }
    }
  }
  std::cout << std::filesystem::path(path).filename().string() << ": " << want.size() << " tensors, " << numbers
            << " numbers, the same in " << runs << " runs" << std::endl;
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  try {
    if (argc < 2) octet::fail_usage("usage: same_bits MODEL.onnx ...");
    for (int i = 1; i < argc; ++i) octet::check(argv[i]);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << "\n";
    return 1;
  }
}
