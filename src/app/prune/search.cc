#include "app/prune/search.h"

#include <charconv>

#include "app/prune/proof.h"
#include "base/log.h"
#include "ir/summary.h"
#include "passes/prune/cut.h"
#include "passes/prune/target.h"
#include "report/format.h"

namespace octet::app {
namespace {

using passes::KeptIndices;

[[noreturn]] void out_of_reach(const std::string& what) {
  fail(what,
       " where every layer keeps its least; a smaller --min_num_filters or --pruning_granularity, or fewer excluded "
       "layers, reach further");
}

// Parameters or multiply-accumulates, by `count`.
template <typename Count>
PruneSearch search_by_count(const ir::Graph& graph, const passes::ChannelGroups& groups, double share,
                            const std::string& what, Count count) {
  const auto whole = static_cast<double>(count(graph));
  double least = whole;
  const std::optional<double> found = passes::lowest_threshold(groups, [&](const KeptIndices& kept) {
    const auto left = static_cast<double>(count(passes::cut_channels(graph, kept)));
    least = std::min(least, left);
    return left <= share * whole;
  });
  if (!found)
    out_of_reach(str("the network keeps ", report::fixed(100 * least / whole, 1), " % of its ", what, ", not ",
                     report::fixed(100 * share, 1), " %,"));
  return {.threshold = *found, .times = std::nullopt, .timed_on = ""};
}

int64_t parameters_of(const ir::Graph& graph) {
  return ir::summarize(graph).parameters;
}

int64_t macs_of(const ir::Graph& graph) {
  const std::optional<int64_t> macs = ir::summarize(graph).macs;
  if (!macs)
    fail_usage("--target-macs: the multiply-accumulates of graph '", graph.name,
               "' are not known, since a size of its input is open; use --target-params or --target-latency");
  return *macs;
}

struct TimeTarget {
  double value;
  bool is_share;
};

TimeTarget read_time(const std::string& text) {
  const bool milliseconds = text.size() > 2 && text.substr(text.size() - 2) == "ms";
  const char* const end = text.data() + text.size() - (milliseconds ? 2 : 0);
  double value = 0;
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || !(value > 0) || (!milliseconds && value >= 1))
    fail_usage("--target-latency ", text,
               ": expected a share of the whole network's time (0.6) or milliseconds (4.5ms)");
  return {value, !milliseconds};
}

PruneSearch search_by_time(const ir::Graph& graph, const passes::ChannelGroups& groups, const std::string& text,
                           const EngineTimeOptions& options) {
  const TimeTarget target = read_time(text);
  const ir::Graph sized = with_sizes(graph);
  const std::unique_ptr<EngineLatency> whole = engine_for_timing(sized, options);
  PruneSearch out;
  out.timed_on = str(options.int8 ? "INT8" : "FP32", " engine, ", isa_name(whole->executor.isa()), ", ",
                     whole->executor.threads(), whole->executor.threads() == 1 ? " thread" : " threads");
  EngineTimes best, last;
  const std::optional<double> found = passes::lowest_threshold(groups, [&](const KeptIndices& kept) {
    const ir::Graph candidate = passes::cut_channels(sized, kept);
    last = time_beside(*whole, *engine_for_timing(candidate, options));
    log_info("  ", report::human_count(static_cast<double>(parameters_of(candidate))),
             " parameters: ", report::significant(last.pruned_ms, 3), " of ", report::significant(last.whole_ms, 3),
             " ms");
    const bool enough = target.is_share ? last.share <= target.value : last.pruned_ms <= target.value;
    if (enough) best = last;
    return enough;
  });
  if (!found)
    out_of_reach(last.whole_ms == 0
                     ? std::string("no channel can go")
                     : str("the network takes ", report::significant(last.pruned_ms, 3), " of ",
                           report::significant(last.whole_ms, 3), " ms (", out.timed_on, "), more than ", text, ","));
  out.threshold = *found;
  out.times = best;
  return out;
}

}  // namespace

PruneSearch search_threshold(const ir::Graph& graph, const passes::ChannelGroups& groups, const PruneTarget& target,
                             const EngineTimeOptions& engine) {
  if (target.parameters > 0) return search_by_count(graph, groups, target.parameters, "parameters", parameters_of);
  if (target.macs > 0) return search_by_count(graph, groups, target.macs, "multiply-accumulates", macs_of);
  return search_by_time(graph, groups, target.latency, engine);
}

}  // namespace octet::app
