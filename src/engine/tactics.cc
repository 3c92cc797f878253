#include "engine/tactics.h"

#include <algorithm>

#include "base/error.h"
#include "engine/steps_conv.h"

namespace octet::engine {
namespace {

using kernels::ConvArgs;
using kernels::ConvSplit;
using kernels::ConvTactic;
using kernels::KernelTable;

constexpr const char* kRows = "/rows";
constexpr const char* kChannels = "/channels";

std::string name_of(const ConvTactic& tactic) {
  return std::string(tactic.name) + " " + isa_name(tactic.isa);
}

bool applies(const ConvTactic& tactic, const ConvArgs& args) {
  return tactic.applies == nullptr || tactic.applies(args);
}

struct Estimate {
  const ConvTactic* tactic;
  TacticCost cost;

  double sum() const { return cost.microseconds + kPriceOfMiB * cost.mib; }
};

double extra_mib(const ConvTactic& tactic, const ConvArgs& args) {
  if (tactic.prepared_bytes == nullptr) return 0;
  const int64_t replaced = kernels::conv_layout(args.geometry, args.in.c_pitch).weight_bytes;
  return static_cast<double>(std::max<int64_t>(tactic.prepared_bytes(args) - replaced, 0)) / (1 << 20);
}

double working_mib(const ConvTactic& tactic, const ConvArgs& args, int threads) {
  if (tactic.scratch_bytes == nullptr) return 0;
  return static_cast<double>(tactic.scratch_bytes(args) * threads) / (1 << 20);
}

std::vector<Estimate> estimates(const KernelTable& table, const ConvArgs& args, int threads) {
  std::vector<Estimate> out;
  for (const ConvTactic& tactic : table.conv_tactics)
    if (applies(tactic, args))
      out.push_back(
          {&tactic, {tactic.cost(args, threads), extra_mib(tactic, args), working_mib(tactic, args, threads)}});
  std::stable_sort(out.begin(), out.end(), [](const Estimate& a, const Estimate& b) { return a.sum() < b.sum(); });
  return out;
}

}  // namespace

TacticChoice choose_tactic(const KernelTable& table, const std::string& stored, const ConvArgs& args) {
  if (!stored.empty()) {
    const size_t slash = stored.find('/');
    const std::string name = stored.substr(0, slash), split = slash == std::string::npos ? "" : stored.substr(slash);
    for (const ConvTactic& tactic : table.conv_tactics)
      if (name == name_of(tactic) && applies(tactic, args)) {
        return {&tactic, split == kRows       ? ConvSplit::kRows
                         : split == kChannels ? ConvSplit::kChannels
                                              : ConvSplit::kAuto};
      }
  }
  static const int cpus = available_cpus();  // it reads files, and a network has many convolutions
  return {estimates(table, args, cpus).front().tactic, ConvSplit::kAuto};
}

std::vector<TacticCandidate> tactic_candidates(const KernelTable& table, const ConvArgs& args, int threads) {
  const std::vector<Estimate> all = estimates(table, args, threads);
  std::vector<TacticCandidate> out;
  for (const Estimate& e : all) {
    if (e.sum() > kHopeless * all.front().sum()) break;
    out.push_back({name_of(*e.tactic), e.cost});
  }
  if (threads == 1) return out;
  // The automatic split is one of the two; the other is worth a try where there is enough to share.
  const size_t count = out.size();
  for (size_t i = 0; i < count; ++i) {
    ConvArgs other = args;
    const kernels::ConvShare share = kernels::tactic_share(*all[i].tactic, args, 0, threads);
    const bool by_rows = share.blocks.end == kernels::conv_layout(args.geometry, args.in.c_pitch).blocks;
    other.split = by_rows ? ConvSplit::kChannels : ConvSplit::kRows;
    const kernels::ConvShare changed = kernels::tactic_share(*all[i].tactic, other, 0, threads);
    if (changed.rows.end > changed.rows.begin && changed.blocks.end > changed.blocks.begin)
      out.push_back({out[i].name + (by_rows ? kChannels : kRows), out[i].estimate});
  }
  return out;
}

double weights_mib(const Plan& plan) {
  return plan.constants ? static_cast<double>(plan.constants->bytes().size()) / (1 << 20) : 0;
}

void choose_tactics_by_model(Plan& plan, const TacticOptions& options) {
  const int threads = options.threads > 0 ? options.threads : available_cpus();
  std::vector<std::vector<TacticCandidate>> candidates(plan.steps.size());
  std::vector<std::vector<TacticCost>> costs(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind != kConvKind) continue;
    candidates[i] = conv_candidates(plan, plan.steps[i], kernels::kernels(options.isa), threads);
    for (const TacticCandidate& candidate : candidates[i]) costs[i].push_back(candidate.estimate);
  }
  const std::vector<size_t> chosen = choose_within_memory(costs, weights_mib(plan));
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (!candidates[i].empty()) plan.steps[i].tactic = candidates[i][chosen[i]].name;
}

}  // namespace octet::engine
