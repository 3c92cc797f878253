// How often each magnitude occurs in a tensor, over any number of batches, in constant memory.
//
// The result is a function of the multiset of observed values alone: not of batch size, order, or number of partial
// histograms that were merged. That holds because the range of the bins is always a power of two (the smallest above
// the largest magnitude so far): when it grows, neighboring bins are added up exactly, and a value lands in the same
// bin as if it had been seen after the growth. Toolkits whose bin width is set by the first batch do not have this.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet::quant {

class Histogram {
 public:
  // A range that is a power of two leaves at least half of the bins below the largest magnitude: never fewer than 2048.
  static constexpr int kBins = 4096;

  void observe(std::span<const float> values);
  // Adds what `other` has seen.
  void merge(const Histogram& other);

  // All finite values, zeros included.
  int64_t count() const { return zeros_ + nonzeros_; }
  int64_t zeros() const { return zeros_; }
  int64_t nans() const { return nans_; }
  int64_t infinities() const { return infinities_; }
  // Exact extremes of the finite values; 0 when there were none.
  float min() const { return count() ? min_ : 0.0f; }
  float max() const { return count() ? max_ : 0.0f; }
  float amax() const;

  // Bin k counts the finite non-zero values with k * width <= |x| < (k + 1) * width. Width 0: none were seen.
  double bin_width() const;
  std::span<const int64_t> bins() const { return bins_; }
  // One more than the index of the last bin that is not empty.
  int used_bins() const;

  // Bytes held, the object itself included. Does not depend on how much was observed, once something other than zero
  // was.
  size_t memory_bytes() const { return sizeof(*this) + bins_.capacity() * sizeof(int64_t); }

  // The whole, for another process of the program; of_bytes() gives it back. UserError where they end too soon.
  std::string bytes() const;
  static Histogram of_bytes(std::string_view bytes);

  friend bool operator==(const Histogram&, const Histogram&) = default;

 private:
  void grow_to(int exponent);
  void observe_chunk(std::span<const float> values);

  std::vector<int64_t> bins_;  // empty until a finite non-zero value is seen
  int exponent_ = 0;           // the bins cover [0, 2^exponent_)
  int64_t zeros_ = 0, nonzeros_ = 0, nans_ = 0, infinities_ = 0;
  float min_ = 0, max_ = 0;
};

// The counts of non-zero magnitudes in `parts` equal parts from 0 to amax(), for people to look at: a bin belongs to
// the part in which its middle lies. Zeros where there are none.
std::vector<int64_t> magnitudes(const Histogram& histogram, int parts);

}  // namespace octet::quant
