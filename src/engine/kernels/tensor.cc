#include "engine/kernels/tensor.h"

#include <cstring>

namespace octet::kernels {

int64_t padded_channels(int64_t channels) {
  return (channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock;
}

int64_t channel_pitch(int64_t channels) {
  return channels <= 4 ? 4 : padded_channels(channels);
}

int64_t qtensor_bytes(int64_t n, int64_t h, int64_t w, int64_t c, const Halo& halo) {
  return n * (halo.top + h + halo.bottom) * (halo.left + w + halo.right) * channel_pitch(c) + kReadSlack;
}

QTensor make_qtensor(uint8_t* buffer, int64_t n, int64_t h, int64_t w, int64_t c, const Halo& halo,
                     int32_t zero_point) {
  QTensor t{.n = n, .h = h, .w = w, .c = c, .c_pitch = channel_pitch(c), .zero_point = zero_point};
  t.row_stride = (halo.left + w + halo.right) * t.c_pitch;
  t.image_stride = (halo.top + h + halo.bottom) * t.row_stride;
  t.data = buffer + halo.top * t.row_stride + halo.left * t.c_pitch;
  return t;
}

void fill_halo(const QTensor& t, const Halo& halo, Range rows) {
  const int64_t left = halo.left * t.c_pitch, right = halo.right * t.c_pitch, width = t.w * t.c_pitch;
  const auto fill = [&](uint8_t* from, int64_t bytes) {
    if (bytes > 0) std::memset(from, t.zero_point, static_cast<size_t>(bytes));
  };
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t y = r % t.h;
    uint8_t* row = t.data + r / t.h * t.image_stride + y * t.row_stride;
    fill(row - left, left);
    fill(row + width, right);
    if (y == 0)
      for (int64_t i = 1; i <= halo.top; ++i) fill(row - i * t.row_stride - left, left + width + right);
    if (y == t.h - 1)
      for (int64_t i = 1; i <= halo.bottom; ++i) fill(row + i * t.row_stride - left, left + width + right);
  }
}

}  // namespace octet::kernels
