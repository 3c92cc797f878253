// Which tactic computes a convolution: what the engine file names, or what the cost functions say; and how the engine
// file comes to name one: by those estimates, or by a stopwatch on this machine.
#pragma once
#include <string>
#include <vector>

#include "engine/kernels/kernel_table.h"
#include "engine/plan.h"
#include "engine/tactic_memory.h"

namespace octet::engine {

struct TacticChoice {
  const kernels::ConvTactic* tactic = nullptr;
  kernels::ConvSplit split = kernels::ConvSplit::kAuto;
};

// `stored`: Step::tactic. `args` as for ConvTactic::applies. Never fails: "direct" takes every convolution.
TacticChoice choose_tactic(const kernels::KernelTable& table, const std::string& stored, const kernels::ConvArgs& args);

// What Step::tactic may name for a convolution.
struct TacticCandidate {
  std::string name;
  TacticCost estimate;
};
// Lowest estimate (the price of memory included) first; candidates that are estimated at more than `kHopeless` times
// the best are left out.
inline constexpr double kHopeless = 4;
std::vector<TacticCandidate> tactic_candidates(const kernels::KernelTable& table, const kernels::ConvArgs& args,
                                               int threads);

struct TacticOptions {
  Isa isa = default_isa();
  int threads = 0;           // 0: available_cpus()
  double limit_seconds = 8;  // of the stopwatch
};

// Of all constants of the plan.
double weights_mib(const Plan& plan);

// Names the best estimate in every convolution of the plan (tactic_memory.h).
void choose_tactics_by_model(Plan& plan, const TacticOptions& options);

// Runs the whole network with every step's first, second, third ... candidate, several times in turn, so that weights
// come from as far, and inputs from the same core, as in earnest. Then whole choices compete: the estimates, and those
// where a step takes its fastest candidate (the price of memory included) if that saves 3, 10 or 20 %. At last every
// step of the best choice may share its work another way, if that is faster together with its neighbors.
// Reproducible from then on: the plan names what runs.
struct TimedTactics {
  int runs = 0;                        // of the network
  double seconds = 0;                  // spent
  double before_ms = 0, after_ms = 0;  // with the estimates, and with the choice: the fastest of every step
  int changed = 0;                     // steps that left their estimate
};
TimedTactics choose_tactics_by_timing(Plan& plan, const TacticOptions& options);

}  // namespace octet::engine
