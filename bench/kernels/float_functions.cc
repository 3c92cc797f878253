// Time of float functions and Softmax by instruction set, one thread, on data in the first-level cache and out of it.
//   float_functions
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "engine/kernels/kernel_table.h"

using namespace octet;
using namespace octet::kernels;

namespace {

// Nanoseconds per element, the fastest of some runs.
template <typename Run>
double time_of(int64_t elements, Run&& run) {
  const int64_t repeats = std::max<int64_t>(1, 200'000 / elements);
  double best = 1e30;
  for (int i = 0; i < 15; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t r = 0; r < repeats; ++r) run();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / static_cast<double>(repeats * elements));
  }
  return best;
}

}  // namespace

int main() {
  const std::pair<const char*, UnaryOp> functions[] = {{"relu", UnaryOp::kRelu},
                                                       {"leaky_relu", UnaryOp::kLeakyRelu},
                                                       {"hard_swish", UnaryOp::kHardSwish},
                                                       {"exp", UnaryOp::kExp},
                                                       {"sigmoid", UnaryOp::kSigmoid},
                                                       {"silu", UnaryOp::kSilu},
                                                       {"tanh", UnaryOp::kTanh},
                                                       {"elu", UnaryOp::kElu},
                                                       {"softplus", UnaryOp::kSoftplus},
                                                       {"erf", UnaryOp::kErf}};
  std::mt19937 rng(1);
  std::vector<float> in(1 << 20), out(in.size());
  for (auto& x : in) x = std::normal_distribution<float>(0, 3)(rng);
  for (const int64_t elements : {int64_t{2048}, int64_t{1} << 20})
    for (Isa isa : supported_isas()) {
      std::printf("%-12s %7lld elements, ns each:", isa_name(isa), static_cast<long long>(elements));
      for (const auto& [name, op] : functions) {
        const UnaryArgs a{.op = op, .in = in.data(), .out = out.data(), .alpha = 0.1f, .beta = 1};
        std::printf(" %s %.3f", name, time_of(elements, [&] { kernels::kernels(isa).unary(a, Range{0, elements}); }));
      }
      for (const int64_t inner : {1, 64}) {
        const SoftmaxArgs a{{in.data(), out.data(), elements / 1024, 1024 / inner, inner}};
        std::printf(" softmax/%lld %.3f", static_cast<long long>(inner), time_of(elements, [&] {
                      kernels::kernels(isa).softmax(a, Range{0, elements / 1024});
                    }));
      }
      std::printf("\n");
    }
}
