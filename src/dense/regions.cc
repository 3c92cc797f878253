// Operators that read images between pixels: regions of interest.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/parallel.h"
#include "dense/operators.h"

namespace octet::dense {
namespace {

// A place between four pixels.
struct Sample {
  int64_t at[4] = {};
  float weight[4] = {};
};

// Nothing weighs where the place lies outside the image by more than a pixel.
Sample sample_at(float y, float x, int64_t height, int64_t width) {
  Sample out;
  if (!(y >= -1 && y <= static_cast<float>(height) && x >= -1 && x <= static_cast<float>(width))) return out;
  y = std::max(y, 0.0f), x = std::max(x, 0.0f);
  auto low_y = static_cast<int64_t>(y), low_x = static_cast<int64_t>(x);
  int64_t high_y = low_y + 1, high_x = low_x + 1;
  if (low_y >= height - 1) low_y = high_y = height - 1, y = static_cast<float>(low_y);
  if (low_x >= width - 1) low_x = high_x = width - 1, x = static_cast<float>(low_x);
  const float ly = y - static_cast<float>(low_y), lx = x - static_cast<float>(low_x), hy = 1 - ly, hx = 1 - lx;
  out.at[0] = low_y * width + low_x, out.at[1] = low_y * width + high_x;
  out.at[2] = high_y * width + low_x, out.at[3] = high_y * width + high_x;
  out.weight[0] = hy * hx, out.weight[1] = hy * lx, out.weight[2] = ly * hx, out.weight[3] = ly * lx;
  return out;
}

// A region on the grid of its image's pixels.
struct Region {
  const float* image = nullptr;
  float y = 0, x = 0;                    // its upper left corner
  float bin_h = 0, bin_w = 0;            // of an output
  int64_t samples_h = 0, samples_w = 0;  // of an output
};

class RoiAlign {
 public:
  explicit RoiAlign(const Call& call) : call_(call), x_(call.input(0)), boxes_(call.input(1)), images_(call.ints(2)) {
    require(x_.type() == Type::kFloat && boxes_.type() == Type::kFloat && x_.rank() == 4 && boxes_.rank() == 2 &&
                boxes_.shape()[1] == 4 && call.input(2).rank() == 1 &&
                boxes_.shape()[0] == static_cast<int64_t>(images_.size()),
            "images ", shape_text(x_.shape()), ", regions ", shape_text(boxes_.shape()), " and ", images_.size(),
            " numbers of images do not fit each other");
    const std::string mode = call.string_attribute("mode", "avg");
    require(mode == "avg" || mode == "max", "mode is '", mode, "', expected avg or max");
    average_ = mode == "avg";
    const std::string coordinates = call.string_attribute("coordinate_transformation_mode", "half_pixel");
    require(coordinates == "half_pixel" || coordinates == "output_half_pixel", "coordinate_transformation_mode is '",
            coordinates, "', expected half_pixel or output_half_pixel");
    half_pixel_ = coordinates == "half_pixel";
    rows_ = call.int_attribute("output_height", 1), columns_ = call.int_attribute("output_width", 1);
    ratio_ = call.int_attribute("sampling_ratio", 0);
    scale_ = call.float_attribute("spatial_scale", 1);
    require(rows_ > 0 && columns_ > 0 && ratio_ >= 0 && ratio_ <= 1024, "an output of ", rows_, " x ", columns_,
            " with a sampling ratio of ", ratio_);
    require(height() > 0 && width() > 0, "the images ", shape_text(x_.shape()), " have no pixels");
  }

  Tensor run() const {
    std::vector<Region> regions;  // first of all, as what does not fit must be said on this thread
    for (size_t n = 0; n < images_.size(); ++n) regions.push_back(region(n));
    Tensor out = call_.memory().make<float>({std::ssize(images_), channels(), rows_, columns_});
    float* const to = out.mutable_values<float>().data();
    parallel_for(std::ssize(regions), out.size() > 1 << 14 ? call_.threads() : 1,
                 [&](int64_t n) { align(regions[static_cast<size_t>(n)], to + n * channels() * rows_ * columns_); });
    return out;
  }

 private:
  int64_t channels() const { return x_.shape()[1]; }
  int64_t height() const { return x_.shape()[2]; }
  int64_t width() const { return x_.shape()[3]; }

  Region region(size_t n) const {
    require(images_[n] >= 0 && images_[n] < x_.shape()[0], "a region lies in image ", images_[n], " of ",
            x_.shape()[0]);
    const float* box = boxes_.values<float>().data() + n * 4;
    const float shift = half_pixel_ ? 0.5f : 0.0f;
    Region out{.image = x_.values<float>().data() + images_[n] * channels() * height() * width(),
               .y = box[1] * scale_ - shift,
               .x = box[0] * scale_ - shift};
    float w = box[2] * scale_ - shift - out.x, h = box[3] * scale_ - shift - out.y;
    if (!half_pixel_) w = std::max(w, 1.0f), h = std::max(h, 1.0f);
    out.bin_h = h / static_cast<float>(rows_), out.bin_w = w / static_cast<float>(columns_);
    const auto samples = [&](float size, int64_t bins) {
      if (ratio_ > 0) return ratio_;
      const float wanted = std::ceil(size / static_cast<float>(bins));
      require(wanted <= 1024, "a region of ", box[0], ", ", box[1], ", ", box[2], ", ", box[3],
              " is too large for its image");
      return wanted > 0 ? static_cast<int64_t>(wanted) : int64_t{0};
    };
    out.samples_h = samples(h, rows_), out.samples_w = samples(w, columns_);
    require(out.samples_h * out.samples_w <= 1 << 16, "a region is read at ", out.samples_h, " x ", out.samples_w,
            " places for a number");
    return out;
  }

  // [channels, rows, columns]
  void align(const Region& region, float* to) const {
    const auto part = [](float start, int64_t bin, float size, int64_t i, int64_t samples) {
      return start + static_cast<float>(bin) * size +
             (static_cast<float>(i) + 0.5f) * size / static_cast<float>(samples);
    };
    std::vector<Sample> samples;
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t c = 0; c < columns_; ++c) {
        samples.clear();
        for (int64_t i = 0; i < region.samples_h; ++i)
          for (int64_t j = 0; j < region.samples_w; ++j)
            samples.push_back(sample_at(part(region.y, r, region.bin_h, i, region.samples_h),
                                        part(region.x, c, region.bin_w, j, region.samples_w), height(), width()));
        for (int64_t k = 0; k < channels(); ++k)
          to[(k * rows_ + r) * columns_ + c] = pooled(samples, region.image + k * height() * width());
      }
  }

  // The mean of the samples, or the largest of what their corners contribute.
  float pooled(const std::vector<Sample>& samples, const float* plane) const {
    float sum = 0, largest = 0;
    bool first = true;
    for (const Sample& s : samples) {
      float value = 0, most = 0;
      for (int corner = 0; corner < 4; ++corner) {
        const float part = s.weight[corner] * plane[s.at[corner]];
        value += part;
        most = corner == 0 ? part : std::max(most, part);
      }
      sum += value;
      largest = first ? most : std::max(largest, most);
      first = false;
    }
    return average_ ? sum / static_cast<float>(std::max<size_t>(samples.size(), 1)) : largest;
  }

  const Call& call_;
  const Tensor &x_, &boxes_;
  std::vector<int64_t> images_;
  bool average_ = true, half_pixel_ = true;
  int64_t rows_ = 1, columns_ = 1, ratio_ = 0;
  float scale_ = 1;
};

Tensors roi_align(const Call& call) {
  return {RoiAlign(call).run()};
}

}  // namespace

std::vector<Operator> region_operators() {
  return {
      {"RoiAlign",
       roi_align,
       3,
       3,
       1,
       Typing::kFirst,
       {"mode", "coordinate_transformation_mode", "output_height", "output_width", "sampling_ratio", "spatial_scale"}}};
}

}  // namespace octet::dense
