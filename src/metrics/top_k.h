// Accuracy of classifiers. One rule of ranking for float, fake-quantized and INT8 models, so that their numbers
// compare: the higher score first, among equal scores the lower class; NaN ranks below everything.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace octet::metrics {

// Class of the highest score; `scores` has at least one.
int top_1(std::span<const float> scores);

// The min(k, classes) first classes, best first. k >= 1.
std::vector<int> top_k(std::span<const float> scores, int k);

// Place of class `label` in the ranking, 0 is first. O(classes), without sorting.
int64_t rank_of(std::span<const float> scores, int64_t label);

// Running counts over batches.
class TopKAccumulator {
 public:
  explicit TopKAccumulator(int k = 5);  // k >= 1

  // `scores` is [image][class], labels.size() images; the number of classes follows and must stay the same. Labels lie
  // in [0, classes).
  void add(std::span<const float> scores, std::span<const int64_t> labels);
  // Adds the counts of another part of the data; same k, same classes.
  void merge(const TopKAccumulator& other);

  int k() const { return k_; }
  int64_t classes() const { return classes_; }
  int64_t images() const { return images_; }
  int64_t top_1_hits() const { return top_1_hits_; }
  int64_t top_k_hits() const { return top_k_hits_; }
  // Fractions in [0, 1]; 0 before the first image.
  double top_1() const;
  double top_k() const;

  // How often images of class `label` were taken for class `predicted`.
  int64_t confusion(int64_t label, int64_t predicted) const;
  // The whole matrix, [label][predicted], classes() * classes().
  std::span<const int64_t> confusion_matrix() const { return confusion_; }
  // Fraction of each class's images that were recognized; NaN for a class without images.
  std::vector<double> per_class_accuracy() const;

 private:
  void fix_classes(int64_t classes);

  int k_;
  int64_t classes_ = 0, images_ = 0, top_1_hits_ = 0, top_k_hits_ = 0;
  std::vector<int64_t> confusion_;
};

}  // namespace octet::metrics
