#include "app/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "ir/tensor.h"
#include "metrics/top_k.h"

namespace octet::app {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Which output of each network are held against each other.
using Pairs = std::vector<std::pair<size_t, size_t>>;

Pairs pairs_of(const tasks::Signature& first, const tasks::Signature& second) {
  Pairs pairs;
  for (size_t i = 0; i < first.outputs.size(); ++i)
    for (size_t j = 0; j < second.outputs.size(); ++j)
      if (first.outputs[i].name == second.outputs[j].name) pairs.emplace_back(i, j);
  if (!pairs.empty()) return pairs;
  require(first.outputs.size() == second.outputs.size(),
          "the networks have no output of the same name, and not as many: ", first.outputs.size(), " and ",
          second.outputs.size(), "; nothing can be compared");
  for (size_t i = 0; i < first.outputs.size(); ++i) pairs.emplace_back(i, i);
  return pairs;
}

class Comparer {
 public:
  Comparer(const Model& first, const Model& second, const ComparisonOptions& options)
      : pairs_(pairs_of(first.signature(), second.signature())), options_(options) {
    for (const auto& [i, j] : pairs_) {
      OutputComparison& sum = result.outputs.emplace_back();
      sum.first = first.signature().outputs[i].name;
      sum.second = second.signature().outputs[j].name;
    }
  }

  void add(const tasks::Outputs& first, const tasks::Outputs& second, std::span<const int64_t> images) {
    for (size_t p = 0; p < pairs_.size(); ++p) {
      const tasks::OutputView &a = first.at(pairs_[p].first), &b = second.at(pairs_[p].second);
      OutputComparison& sum = result.outputs[p];
      require(a.values.size() == b.values.size(), "output '", sum.first, "' is ", ir::shape_string(a.shape),
              " in the first network and ", ir::shape_string(b.shape), " in the second");
      compare_values(a.values, b.values, sum);
      sum.classes = a.shape.size() == 2 && b.shape.size() == 2 && a.shape[1] > 1;
      if (!sum.classes) continue;
      const auto classes = static_cast<size_t>(a.shape[1]);
      for (size_t n = 0; n < images.size(); ++n)
        compare_classes(a.values.subspan(n * classes, classes), a.scores, b.values.subspan(n * classes, classes),
                        images[n], options_.margin, sum);
    }
    result.images += std::ssize(images);
  }

  Comparison result;

 private:
  Pairs pairs_;
  const ComparisonOptions& options_;
};

}  // namespace

double OutputComparison::sqnr_db() const {
  if (noise == 0) return kInfinity;
  return 10 * std::log10(signal / noise);
}

double OutputComparison::cosine() const {
  if (signal == 0 && second_signal == 0) return 1;
  return signal == 0 || second_signal == 0 ? 0 : product / std::sqrt(signal * second_signal);
}

double OutputComparison::agreement() const {
  return images > 0 ? static_cast<double>(agree) / static_cast<double>(images) : 0;
}

double OutputComparison::largest_lead() const {
  double largest = 0;
  for (const ClassDifference& each : differences) largest = std::max(largest, each.lead);
  return largest;
}

void compare_values(std::span<const float> first, std::span<const float> second, OutputComparison& sum) {
  OCTET_CHECK(first.size() == second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    const double a = first[i], b = second[i];
    ++sum.elements;
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (!std::isfinite(a)) continue;  // the same, and no number that could be summed
    } else {
      ++sum.different;
      if (!std::isfinite(a) || !std::isfinite(b)) {
        sum.largest_difference = sum.noise = kInfinity;
        continue;
      }
    }
    sum.signal += a * a, sum.second_signal += b * b, sum.product += a * b;
    sum.noise += (a - b) * (a - b);
    sum.largest_difference = std::max(sum.largest_difference, std::abs(a - b));
    sum.magnitude = std::max(sum.magnitude, std::abs(a));
  }
}

void compare_classes(std::span<const float> first, metrics::ScoreKind first_kind, std::span<const float> second,
                     int64_t image, double margin, OutputComparison& sum) {
  const std::vector<int> best = metrics::top_k(first, 2);
  const int other = metrics::top_1(second);
  const std::vector<float> probable = metrics::probabilities(first, first_kind);
  const auto lead_over = [&](int c) {
    return double{probable[static_cast<size_t>(best[0])]} - probable[static_cast<size_t>(c)];
  };
  const bool same = best[0] == other, sure = lead_over(best.at(1)) >= margin;
  ++sum.images;
  sum.agree += same;
  sum.sure += sure;
  sum.sure_agree += sure && same;
  if (!same) sum.differences.push_back({image, best[0], other, lead_over(other)});
}

Comparison compare_models(Model& first, data::Loader& first_images, Model& second, data::Loader& second_images,
                          const ComparisonOptions& options) {
  Comparer comparer(first, second, options);
  first_images.start_epoch(0);
  second_images.start_epoch(0);
  for (;;) {
    const std::optional<data::Batch> a = first_images.next(), b = second_images.next();
    OCTET_CHECK(a.has_value() == b.has_value());
    if (!a) break;
    OCTET_CHECK(a->indices == b->indices, "the loaders read other images");
    comparer.add(first.run(*a), second.run(*b), a->indices);
    if (options.progress) options.progress(comparer.result.images);
  }
  if (comparer.result.images == 0) fail("there is no image to compare on");
  return std::move(comparer.result);
}

}  // namespace octet::app
