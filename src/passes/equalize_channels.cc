#include "passes/equalize_channels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

#include "ir/query.h"
#include "passes/channel_sites.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Tensor;
using ir::Value;

constexpr int kMostRounds = 20;
constexpr int kMostExponent = 24;  // of a factor in one round
constexpr double kBiasShare = 0.5;

// visit(index of the element, its channel), for all weights.
template <typename Visit>
void each_weight(const ChannelWeights& w, bool of_output, Visit visit) {
  size_t i = 0;
  for (size_t row = 0; row < w.rows; ++row)
    for (size_t column = 0; column < w.columns; ++column) {
      const size_t channel = w.channel(row, column, of_output);
      for (size_t tap = 0; tap < w.taps; ++tap) visit(i++, channel);
    }
}

void raise_to_weights(std::vector<double>& ranges, const ChannelWeights& w, bool of_output) {
  const auto values = w.node->input(1)->constant->values<float>();
  each_weight(w, of_output, [&](size_t i, size_t channel) {
    ranges[channel] = std::max(ranges[channel], std::abs(static_cast<double>(values[i])));
  });
}

std::vector<double> made_ranges(const ChannelSite& site) {
  std::vector<double> out(site.channels);
  for (const ChannelWeights& w : site.makers) raise_to_weights(out, w, /*of_output=*/true);
  return out;
}

std::vector<double> read_ranges(const ChannelSite& site) {
  std::vector<double> out(site.channels);
  for (const ChannelWeights& w : site.readers) raise_to_weights(out, w, /*of_output=*/false);
  return out;
}

bool is_range(double r) {
  return r > 0 && std::isfinite(r);
}

// To the nearest, of two equally near the smaller: what is chosen brings the channel nearer, so rounds end.
int nearest_exponent(double wanted) {
  const auto size = static_cast<int>(std::min(std::ceil(std::abs(wanted) - 0.5), double{kMostExponent}));
  return wanted < 0 ? -size : size;
}

// Exponents of s, by channel; empty: all are 0. Channels without weights on one side have none. A factor that all
// channels have in common would even out nothing: the median is taken off, so that channels which are alike stay so
// instead of being rounded to either side.
std::vector<int> exponents(const ChannelSite& site) {
  const std::vector<double> r1 = made_ranges(site);
  const std::vector<double> r2 = read_ranges(site);
  std::vector<double> biases(site.channels);
  for (const ChannelWeights& w : site.makers)
    if (w.node->has_input(2)) {
      const auto values = w.node->input(2)->constant->values<float>();
      for (size_t c = 0; c < site.channels; ++c)
        biases[c] = std::max(biases[c], kBiasShare * std::abs(static_cast<double>(values[c])));
    }
  std::vector<std::pair<double, size_t>> wanted;  // logarithms of s, channels
  for (size_t c = 0; c < site.channels; ++c)
    if (is_range(r1[c]) && is_range(r2[c]) && std::isfinite(biases[c]))
      wanted.emplace_back(0.5 * (std::log2(std::max(r1[c], biases[c])) - std::log2(r2[c])), c);
  if (wanted.empty()) return {};
  const auto middle = wanted.begin() + std::ssize(wanted) / 2;
  std::nth_element(wanted.begin(), middle, wanted.end());
  const double common = middle->first;
  std::vector<int> out(site.channels);
  bool any = false;
  for (const auto& [logarithm, c] : wanted) any |= (out[c] = nearest_exponent(logarithm - common)) != 0;
  return any ? out : std::vector<int>();
}

// Multiplies by 2^(sign * exponent of its channel).
void scale(Graph& graph, const ChannelWeights& w, bool of_output, const std::vector<int>& exponent) {
  Value* constant = w.node->input(1);
  const auto old = constant->constant->values<float>();
  const int sign = of_output ? -1 : 1;
  graph.set_constant(constant, Tensor::made<float>(constant->constant->shape(), [&](std::span<float> values) {
                       each_weight(w, of_output, [&](size_t i, size_t channel) {
                         values[i] = std::ldexp(old[i], sign * exponent[channel]);
                       });
                     }));
  if (!of_output || !w.node->has_input(2)) return;
  Value* bias = w.node->input(2);
  const auto was = bias->constant->values<float>();
  graph.set_constant(bias, Tensor::made<float>(bias->constant->shape(), [&](std::span<float> values) {
                       for (size_t c = 0; c < values.size(); ++c) values[c] = std::ldexp(was[c], -exponent[c]);
                     }));
}

// Largest over smallest, without channels that have none.
double ratio(const std::vector<double>& ranges) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const double r : ranges)
    if (is_range(r)) low = std::min(low, r), high = std::max(high, r);
  return high > 0 ? high / low : 1;
}

double largest_ratio(const std::vector<ChannelSite>& sites) {
  double worst = 1;
  const auto look = [&](const ChannelWeights& w, bool of_output) {
    std::vector<double> ranges(of_output ? w.outputs() : w.inputs());
    raise_to_weights(ranges, w, of_output);
    worst = std::max(worst, ratio(ranges));
  };
  for (const ChannelSite& site : sites) {
    for (const ChannelWeights& w : site.makers) look(w, true);
    for (const ChannelWeights& w : site.readers) look(w, false);
  }
  return worst;
}

bool may_relax(const Node& clip, const EqualizeOptions& options) {
  if (options.relax_clips) return true;
  const auto peak = options.peaks.find(clip.input(0)->name);
  return peak != options.peaks.end() && peak->second <= *ir::scalar(clip.input(2));
}

std::string short_number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

}  // namespace

std::string Equalized::text() const {
  std::string out = str("equalized ", pairs, " pairs, largest channel range ratio ", short_number(ratio_before), " -> ",
                        short_number(ratio_after));
  if (!clips.empty())
    out += str("; ", clips.size(), " Clips (", clips.front(), clips.size() > 1 ? " ..." : "",
               ") keep the channels around them as they are, as no kernel of a convolution ends with a limit for each");
  return out;
}

Equalized equalize_channels(Graph& graph, const EqualizeOptions& options) {
  Equalized out;
  std::vector<ChannelSite> sites;
  for (ChannelSite& site : channel_sites(graph)) {
    bool free = true;
    for (const Node* clip : site.ends)
      if (!may_relax(*clip, options)) free = false, out.clips.push_back(clip->name);
    if (free) sites.push_back(std::move(site));
  }
  out.ratio_before = largest_ratio(sites);
  std::vector<bool> changed(sites.size());
  for (int round = 0; round < kMostRounds; ++round) {
    bool settled = true;
    for (size_t k = 0; k < sites.size(); ++k) {
      const std::vector<int> by = exponents(sites[k]);
      if (by.empty()) continue;
      settled = false, changed[k] = true;
      for (const ChannelWeights& w : sites[k].makers) {
        scale(graph, w, /*of_output=*/true, by);
        std::vector<int>& sum = out.divided[w.node->output()->name];
        sum.resize(by.size());
        std::transform(by.begin(), by.end(), sum.begin(), sum.begin(), std::plus());
      }
      for (const ChannelWeights& w : sites[k].readers) scale(graph, w, /*of_output=*/false, by);
    }
    if (settled) break;
  }
  out.ratio_after = largest_ratio(sites);
  for (size_t k = 0; k < sites.size(); ++k) {
    if (!changed[k]) continue;
    ++out.pairs;
    for (Node* clip : sites[k].ends) make_relu(graph, clip, clip->input(0));
  }
  return out;
}

std::vector<std::string> clipped_tensors(const Graph& graph) {
  std::vector<std::string> out;
  for (const ChannelSite& site : channel_sites(graph))
    for (const Node* clip : site.ends) out.push_back(clip->input(0)->name);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace octet::passes
