// Operators that read images between pixels: regions of interest.
#include <algorithm>
#include <cmath>

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

Tensors roi_align(const Call& call) {
  const Tensor &x = call.input(0), &regions = call.input(1);
  const std::vector<int64_t> images = call.ints(2);
  require(x.type() == Type::kFloat && regions.type() == Type::kFloat && x.rank() == 4 && regions.rank() == 2 &&
              regions.shape()[1] == 4 && call.input(2).rank() == 1 &&
              regions.shape()[0] == static_cast<int64_t>(images.size()),
          "images ", shape_text(x.shape()), ", regions ", shape_text(regions.shape()), " and ", images.size(),
          " numbers of images do not fit each other");
  const std::string mode = call.string_attribute("mode", "avg");
  require(mode == "avg" || mode == "max", "mode is '", mode, "', expected avg or max");
  const std::string coordinates = call.string_attribute("coordinate_transformation_mode", "half_pixel");
  require(coordinates == "half_pixel" || coordinates == "output_half_pixel", "coordinate_transformation_mode is '",
          coordinates, "', expected half_pixel or output_half_pixel");
  const bool half_pixel = coordinates == "half_pixel";
  const int64_t rows = call.int_attribute("output_height", 1), columns = call.int_attribute("output_width", 1);
  const int64_t ratio = call.int_attribute("sampling_ratio", 0);
  const float scale = call.float_attribute("spatial_scale", 1);
  require(rows > 0 && columns > 0 && ratio >= 0 && ratio <= 1024, "an output of ", rows, " x ", columns,
          " with a sampling ratio of ", ratio);
  const int64_t channels = x.shape()[1], height = x.shape()[2], width = x.shape()[3];
  require(height > 0 && width > 0, "the images ", shape_text(x.shape()), " have no pixels");
  Tensor out = call.memory().make<float>({static_cast<int64_t>(images.size()), channels, rows, columns});
  const auto to = out.mutable_values<float>();
  const float shift = half_pixel ? 0.5f : 0.0f;
  std::vector<Sample> samples;
  for (size_t n = 0; n < images.size(); ++n) {
    require(images[n] >= 0 && images[n] < x.shape()[0], "a region lies in image ", images[n], " of ", x.shape()[0]);
    const float* box = regions.values<float>().data() + n * 4;
    const float x0 = box[0] * scale - shift, y0 = box[1] * scale - shift;
    float w = box[2] * scale - shift - x0, h = box[3] * scale - shift - y0;
    if (!half_pixel) w = std::max(w, 1.0f), h = std::max(h, 1.0f);
    const float bin_h = h / static_cast<float>(rows), bin_w = w / static_cast<float>(columns);
    const auto grid = [&](float size, int64_t bins) {
      if (ratio > 0) return ratio;
      const float wanted = std::ceil(size / static_cast<float>(bins));
      require(wanted <= 1024, "a region of ", box[0], ", ", box[1], ", ", box[2], ", ", box[3],
              " is too large for its image");
      return wanted > 0 ? static_cast<int64_t>(wanted) : int64_t{0};
    };
    const int64_t grid_h = grid(h, rows), grid_w = grid(w, columns);
    require(grid_h * grid_w <= 1 << 16, "a region is read at ", grid_h, " x ", grid_w, " places for a number");
    const float* image = x.values<float>().data() + images[n] * channels * height * width;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        samples.clear();
        for (int64_t i = 0; i < grid_h; ++i)
          for (int64_t j = 0; j < grid_w; ++j)
            samples.push_back(sample_at(y0 + static_cast<float>(r) * bin_h +
                                            (static_cast<float>(i) + 0.5f) * bin_h / static_cast<float>(grid_h),
                                        x0 + static_cast<float>(c) * bin_w +
                                            (static_cast<float>(j) + 0.5f) * bin_w / static_cast<float>(grid_w),
                                        height, width));
        const auto count = static_cast<float>(std::max<int64_t>(grid_h * grid_w, 1));
        for (int64_t k = 0; k < channels; ++k) {
          const float* plane = image + k * height * width;
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
          to[((n * static_cast<size_t>(channels) + static_cast<size_t>(k)) * static_cast<size_t>(rows) +
              static_cast<size_t>(r)) *
                 static_cast<size_t>(columns) +
             static_cast<size_t>(c)] = mode == "avg" ? sum / count : largest;
        }
      }
  }
  return {out};
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
