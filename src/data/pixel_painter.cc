#include "data/pixel_painter.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octet::data {
namespace {

float cut(float value) {
  return std::min(std::max(value, 0.0f), 1.0f);
}

}  // namespace

Normalization::Normalization(std::vector<float> mean, std::vector<float> stddev)
    : mean_(std::move(mean)), stddev_(std::move(stddev)), tables_(mean_.size()) {
  OCTET_CHECK(mean_.size() == stddev_.size());
  for (size_t c = 0; c < channels(); ++c)
    for (size_t x = 0; x < 256; ++x) tables_[c][x] = of(static_cast<float>(x) / 255.0f, c);
}

PixelPainter::PixelPainter(const Normalization& normalization, const Color& color)
    : normalization_(normalization), mixes_(color.mixes()) {
  if (color.is_identity()) return;
  const size_t channels = normalization.channels();
  OCTET_CHECK(channels == 3 || (channels == 1 && !mixes_), "colors of ", channels, " channels");
  for (size_t to = 0; to < 3; ++to) {
    for (size_t from = 0; from < 3; ++from) shares_[to][from] = static_cast<float>(color.rows[to][from] / 255);
    shares_[to][3] = static_cast<float>(color.rows[to][3]);
  }
  if (mixes_) return;
  changed_.resize(channels);
  for (size_t c = 0; c < channels; ++c)
    for (size_t x = 0; x < 256; ++x)
      changed_[c][x] = normalization.of(cut(shares_[c][c] * static_cast<float>(x) + shares_[c][3]), c);
}

void PixelPainter::row(const uint8_t* in, int pixels, float* out, ptrdiff_t plane) const {
  if (mixes_) return mix_row(in, pixels, out, plane);
  const size_t channels = normalization_.channels();
  for (size_t c = 0; c < channels; ++c, out += plane) {
    const Normalization::Table& table = changed_.empty() ? normalization_.table(c) : changed_[c];
    const uint8_t* byte = in + c;
    for (int x = 0; x < pixels; ++x, byte += channels) out[x] = table[*byte];
  }
}

void PixelPainter::mix_row(const uint8_t* in, int pixels, float* out, ptrdiff_t plane) const {
  float *const red = out, *const green = out + plane, *const blue = out + 2 * plane;
  // First apart, so that the arithmetic runs over rows of floats, many at a time.
  for (int x = 0; x < pixels; ++x, in += 3) {
    red[x] = in[0];
    green[x] = in[1];
    blue[x] = in[2];
  }
  const auto& shares = shares_;
  const auto mixed = [&shares](size_t c, float r, float g, float b) {
    return cut(shares[c][0] * r + shares[c][1] * g + shares[c][2] * b + shares[c][3]);
  };
#ifndef __clang__
#pragma GCC ivdep  // the rows lie apart
#endif
  for (int x = 0; x < pixels; ++x) {
    const float r = red[x], g = green[x], b = blue[x];
    red[x] = normalization_.of(mixed(0, r, g, b), 0);
    green[x] = normalization_.of(mixed(1, r, g, b), 1);
    blue[x] = normalization_.of(mixed(2, r, g, b), 2);
  }
}

}  // namespace octet::data
