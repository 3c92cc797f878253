#include "metrics/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace octet::metrics {
namespace {

// Class a (score x) ranks before class b (score y).
bool before(float x, int64_t a, float y, int64_t b) {
  if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
  if (x > y) return true;
  return (x == y || std::isnan(x)) && a < b;
}

}  // namespace

int top_1(std::span<const float> scores) {
  OCTET_CHECK(!scores.empty());
  size_t best = 0;
  for (size_t i = 1; i < scores.size(); ++i)
    if (before(scores[i], static_cast<int64_t>(i), scores[best], static_cast<int64_t>(best))) best = i;
  return static_cast<int>(best);
}

std::vector<int> top_k(std::span<const float> scores, int k) {
  OCTET_CHECK(k >= 1, k);
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t count = std::min(static_cast<size_t>(k), scores.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(), [&](int a, int b) {
    return before(scores[static_cast<size_t>(a)], a, scores[static_cast<size_t>(b)], b);
  });
  order.resize(count);
  return order;
}

int64_t rank_of(std::span<const float> scores, int64_t label) {
  OCTET_CHECK(label >= 0 && std::cmp_less(label, scores.size()), "label ", label, " of ", scores.size(), " classes");
  const float own = scores[static_cast<size_t>(label)];
  int64_t rank = 0;
  for (size_t i = 0; i < scores.size(); ++i) rank += before(scores[i], static_cast<int64_t>(i), own, label);
  return rank;
}

TopKAccumulator::TopKAccumulator(int k) : k_(k) {
  OCTET_CHECK(k >= 1, k);
}

void TopKAccumulator::fix_classes(int64_t classes) {
  if (classes_ == 0) {
    classes_ = classes;
    confusion_.assign(static_cast<size_t>(classes * classes), 0);
  }
  OCTET_CHECK(classes == classes_, classes, " classes after ", classes_);
}

void TopKAccumulator::add(std::span<const float> scores, std::span<const int64_t> labels) {
  if (labels.empty()) {
    OCTET_CHECK(scores.empty());
    return;
  }
  OCTET_CHECK(!scores.empty() && scores.size() % labels.size() == 0, scores.size(), " scores for ", labels.size(),
              " images");
  const size_t classes = scores.size() / labels.size();
  fix_classes(static_cast<int64_t>(classes));
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> row = scores.subspan(i * classes, classes);
    const int64_t rank = rank_of(row, labels[i]);
    top_1_hits_ += rank == 0;
    top_k_hits_ += rank < k_;
    confusion_[static_cast<size_t>(labels[i]) * classes + static_cast<size_t>(octet::metrics::top_1(row))]++;
  }
  images_ += static_cast<int64_t>(labels.size());
}

void TopKAccumulator::merge(const TopKAccumulator& other) {
  OCTET_CHECK(k_ == other.k_, k_, " and ", other.k_);
  if (other.images_ == 0) return;
  fix_classes(other.classes_);
  images_ += other.images_;
  top_1_hits_ += other.top_1_hits_;
  top_k_hits_ += other.top_k_hits_;
  for (size_t i = 0; i < confusion_.size(); ++i) confusion_[i] += other.confusion_[i];
}

double TopKAccumulator::top_1() const {
  return images_ == 0 ? 0 : static_cast<double>(top_1_hits_) / static_cast<double>(images_);
}

double TopKAccumulator::top_k() const {
  return images_ == 0 ? 0 : static_cast<double>(top_k_hits_) / static_cast<double>(images_);
}

int64_t TopKAccumulator::confusion(int64_t label, int64_t predicted) const {
  OCTET_CHECK(label >= 0 && label < classes_ && predicted >= 0 && predicted < classes_, label, ", ", predicted);
  return confusion_[static_cast<size_t>(label * classes_ + predicted)];
}

std::vector<double> TopKAccumulator::per_class_accuracy() const {
  std::vector<double> out;
  for (int64_t label = 0; label < classes_; ++label) {
    const auto row =
        std::span(confusion_).subspan(static_cast<size_t>(label * classes_), static_cast<size_t>(classes_));
    const int64_t total = std::accumulate(row.begin(), row.end(), int64_t{0});
    out.push_back(total == 0 ? std::numeric_limits<double>::quiet_NaN()
                             : static_cast<double>(row[static_cast<size_t>(label)]) / static_cast<double>(total));
  }
  return out;
}

}  // namespace octet::metrics
