#include "vision/box_coder.h"

#include <cmath>

#include "base/error.h"

namespace octet::vision {
namespace {

struct CenterSize {
  float x, y, width, height;
};

CenterSize center_size(const Box& box, Borders borders = Borders::kExclusive) {
  const float extra = borders == Borders::kInclusive ? 1.0f : 0.0f;
  const float width = box.width() + extra, height = box.height() + extra;
  OCTET_CHECK(width > 0 && height > 0, "a box of ", width, " x ", height);
  return {box.x0 + 0.5f * width, box.y0 + 0.5f * height, width, height};
}

Box box_of(const CenterSize& b, Borders borders = Borders::kExclusive) {
  const float extra = borders == Borders::kInclusive ? 1.0f : 0.0f;
  const float x = 0.5f * b.width, y = 0.5f * b.height;
  return {b.x - x, b.y - y, b.x + x - extra, b.y + y - extra};
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

CenterSizeCoder CenterSizeCoder::of_weights(const BoxCode& weights) {
  CenterSizeCoder coder;
  for (size_t i = 0; i < weights.size(); ++i) coder.variances[i] = 1 / weights[i];
  return coder;
}

BoxCode CenterSizeCoder::encode(const Box& box, const Box& anchor) const {
  const CenterSize b = center_size(box, borders), a = center_size(anchor, borders);
  return {(b.x - a.x) / a.width / variances[0], (b.y - a.y) / a.height / variances[1],
          std::log(b.width / a.width) / variances[2], std::log(b.height / a.height) / variances[3]};
}

Box CenterSizeCoder::decode(const BoxCode& code, const Box& anchor) const {
  const CenterSize a = center_size(anchor, borders);
  const auto size = [&](float from, float log_size) { return from * std::exp(std::min(log_size, max_log_size)); };
  return box_of({a.x + code[0] * variances[0] * a.width, a.y + code[1] * variances[1] * a.height,
                 size(a.width, code[2] * variances[2]), size(a.height, code[3] * variances[3])},
                borders);
}

BoxCode YoloCoder::encode(const Box& box, const Box& anchor, const CellSize& cell) const {
  const CenterSize a = center_size(anchor);
  const auto log_ratio = [&](float length, float prior) {
    return std::log(std::clamp(length / prior, 1 / max_ratio, max_ratio));
  };
  return {(0.5f * (box.x0 + box.x1) - a.x) / cell.x + 0.5f, (0.5f * (box.y0 + box.y1) - a.y) / cell.y + 0.5f,
          log_ratio(box.width(), a.width), log_ratio(box.height(), a.height)};
}

Box YoloCoder::decode(const BoxCode& logits, const Box& anchor, const CellSize& cell) const {
  const CenterSize a = center_size(anchor);
  // From the middle of the cell: s sigmoid - (s - 1) / 2 - 1 / 2.
  const auto place = [&](float middle, float logit, float length) {
    return middle + xy_scale * (sigmoid(logit) - 0.5f) * length;
  };
  const auto size = [&](float prior, float log_size) { return prior * std::exp(std::min(log_size, max_log_size)); };
  return box_of({place(a.x, logits[0], cell.x), place(a.y, logits[1], cell.y), size(a.width, logits[2]),
                 size(a.height, logits[3])});
}

}  // namespace octet::vision
