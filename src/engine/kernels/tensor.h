// What the INT8 kernels see of a tensor: codes in memory, without a name, a plan or an owner.
#pragma once
#include <cstdint>

namespace octet::kernels {

// Half-open range of work units; the executor gives every thread its own. An empty range is allowed.
struct Range {
  int64_t begin = 0, end = 0;
};

// Channels are stored in blocks of 16, so that producers write whole vectors and never need a mask.
inline constexpr int64_t kChannelBlock = 16;
// Readable bytes that must follow the last row of every INT8 buffer: vector loads may run over.
inline constexpr int64_t kReadSlack = 64;

// Bytes from one pixel to the next: 4 for up to four channels (images), otherwise the next multiple of 16.
int64_t channel_pitch(int64_t channels);
// The next multiple of 16: what acc_init, multiplier and every other array per output channel is padded to.
int64_t padded_channels(int64_t channels);

// View of u8 codes, layout (n, h, w, c) with pitches in bytes. Signed codes q are stored as q + 128 with the zero point
// moved alike, so that kernels know one signedness. Bytes in channels [c, c_pitch) are undefined (but readable).
// A view may be a window of a larger buffer (a halo around it, a channel range of a concatenation).
struct QTensor {
  uint8_t* data = nullptr;  // first interior pixel of image 0
  int64_t n = 0, h = 0, w = 0, c = 0;
  int64_t c_pitch = 0;                       // bytes between pixels
  int64_t row_stride = 0, image_stride = 0;  // bytes between rows and between images, halo included
  int32_t zero_point = 0;                    // 0..255
};

// Pixels around the image that hold the zero point, so that padded convolutions need no border code.
struct Halo {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// Bytes of a buffer for an n x h x w x c tensor with this halo, kReadSlack included.
int64_t qtensor_bytes(int64_t n, int64_t h, int64_t w, int64_t c, const Halo& halo);
// The view of such a buffer: sets pitches and points `data` at the first interior pixel.
QTensor make_qtensor(uint8_t* buffer, int64_t n, int64_t h, int64_t w, int64_t c, const Halo& halo, int32_t zero_point);

// Rows [rows.begin, rows.end) counted over n * h; row 0 and row h-1 of an image bring the halo rows above and below.
void fill_halo(const QTensor& t, const Halo& halo, Range rows);

}  // namespace octet::kernels
