// From the bytes of pixels to the floats that a network takes: their color changes, then they are normalized.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/color.h"

namespace octet::data {

// (x / 255 - mean) / stddev, evaluated in float32.
class Normalization {
 public:
  using Table = std::array<float, 256>;  // of every byte

  // One mean and deviation for each channel.
  Normalization(std::vector<float> mean, std::vector<float> stddev);

  size_t channels() const { return mean_.size(); }
  // `value`: x / 255.
  float of(float value, size_t channel) const { return (value - mean_[channel]) / stddev_[channel]; }
  const Table& table(size_t channel) const { return tables_[channel]; }

 private:
  std::vector<float> mean_, stddev_;
  std::vector<Table> tables_;
};

class PixelPainter {
 public:
  // `normalization` must outlive the painter. Colors are for one channel or three; only of three may they mix.
  PixelPainter(const Normalization& normalization, const Color& color);

  // `in`: pixels one after the other, as Image has them. Channel c goes to `out` + c * `plane`.
  void row(const uint8_t* in, int pixels, float* out, ptrdiff_t plane) const;

 private:
  void mix_row(const uint8_t* in, int pixels, float* out, ptrdiff_t plane) const;

  const Normalization& normalization_;
  std::vector<Normalization::Table> changed_;     // where every channel changes by itself
  bool mixes_ = false;                            // else:
  std::array<std::array<float, 4>, 3> shares_{};  // Color::rows, of bytes
};

}  // namespace octet::data
