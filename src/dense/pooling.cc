// Pools over any number of axes, and over whole images.
#include <algorithm>
#include <limits>

#include "base/parallel.h"
#include "dense/window.h"

namespace octet::dense {
namespace {

enum class Pool { kMax, kAverage };

const Tensor& images_of(const Call& call) {
  const Tensor& x = call.input(0);
  require(x.type() == Type::kFloat, "is there for float32 only");
  require(x.rank() >= 3, "should read images, not ", shape_text(x.shape()));
  return x;
}

// The window at a place: the taps that lie on the image, and for each axis how many lie on the image or its padding.
struct Reach {
  Shape first, count;  // pixel of the first tap, taps
  double stated = 1;
};

Reach reach_of(const Window& w, const Shape& image, const Shape& position) {
  Reach out;
  for (size_t d = 0; d < image.size(); ++d) {
    const int64_t start = position[d] * w.strides[d] - w.before[d];
    const Taps taps = taps_inside(start, w.dilations[d], w.kernel[d], image[d]);
    out.first.push_back(start + taps.first * w.dilations[d]);
    out.count.push_back(taps.end - taps.first);
    out.stated *= static_cast<double>(taps_inside(start, w.dilations[d], w.kernel[d], image[d] + w.after[d]).end);
  }
  return out;
}

// Calls visit(place) for each pixel under the window.
template <typename Visit>
void for_each_pixel(const Reach& reach, const Window& w, const Shape& image, size_t axis, int64_t base, Visit& visit) {
  for (int64_t i = 0; i < reach.count[axis]; ++i) {
    const int64_t place = base * image[axis] + reach.first[axis] + i * w.dilations[axis];
    if (axis + 1 == image.size())
      visit(place);
    else
      for_each_pixel(reach, w, image, axis + 1, place, visit);
  }
}

template <Pool kPool>
Tensors pool(const Call& call) {
  const Tensor& x = images_of(call);
  const Shape image(x.shape().begin() + 2, x.shape().end());
  const Shape kernel = *call.ints_attribute("kernel_shape");
  require(kernel.size() == image.size(), "kernel_shape has ", kernel.size(), " numbers, expected ", image.size());
  const Window w = window_of(call, image, kernel, true);
  const bool padded = kPool == Pool::kAverage && call.int_attribute("count_include_pad", 0) != 0;
  Shape shape{x.shape()[0], x.shape()[1]};
  shape.insert(shape.end(), w.out.begin(), w.out.end());
  Tensor out = call.memory().make<float>(shape);
  if (out.size() == 0) return {out};
  const int64_t pixels = element_count(image), positions = element_count(w.out);
  const float* const from = x.values<float>().data();
  float* const to = out.mutable_values<float>().data();
  parallel_for(x.shape()[0] * x.shape()[1], out.size() > 1 << 14 ? call.threads() : 1, [&](int64_t plane) {
    const float* const pixel = from + plane * pixels;
    Shape position(image.size(), 0);
    for (int64_t i = 0; i < positions; ++i) {
      const Reach reach = reach_of(w, image, position);
      double sum = 0;
      float largest = -std::numeric_limits<float>::infinity();
      int64_t count = 0;
      auto visit = [&](int64_t place) {
        if constexpr (kPool == Pool::kMax)
          largest = std::max(largest, pixel[place]);
        else
          sum += pixel[place];
        ++count;
      };
      for_each_pixel(reach, w, image, 0, 0, visit);
      to[plane * positions + i] = kPool == Pool::kMax
                                      ? largest
                                      : static_cast<float>(sum / (padded ? reach.stated : static_cast<double>(count)));
      for (size_t d = image.size(); d-- > 0 && ++position[d] == w.out[d];) position[d] = 0;
    }
  });
  return {out};
}

template <Pool kPool>
Tensors global_pool(const Call& call) {
  const Tensor& x = images_of(call);
  const int64_t pixels = element_count({x.shape().begin() + 2, x.shape().end()});
  Shape shape(x.rank(), 1);
  shape[0] = x.shape()[0], shape[1] = x.shape()[1];
  Tensor out = call.memory().make<float>(shape);
  require(pixels > 0 || out.size() == 0, "the images ", shape_text(x.shape()), " have no pixels");
  const auto from = x.values<float>();
  const auto to = out.mutable_values<float>();
  for (size_t plane = 0; plane < to.size(); ++plane) {
    const auto image = from.subspan(plane * static_cast<size_t>(pixels), static_cast<size_t>(pixels));
    double sum = 0;
    for (const float v : image) sum += v;
    to[plane] = kPool == Pool::kMax ? *std::max_element(image.begin(), image.end())
                                    : static_cast<float>(sum / static_cast<double>(pixels));
  }
  return {out};
}

void check_pool(const AttributeReader& attributes) {
  require(attributes.ints_attribute("kernel_shape").has_value(), "attribute 'kernel_shape' is absent");
}

}  // namespace

std::vector<Operator> pooling_operators() {
  return {{"MaxPool",
           pool<Pool::kMax>,
           1,
           1,
           1,
           Typing::kFirst,
           {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"},
           check_pool},
          {"AveragePool",
           pool<Pool::kAverage>,
           1,
           1,
           1,
           Typing::kFirst,
           {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"},
           check_pool},
          {"GlobalAveragePool", global_pool<Pool::kAverage>},
          {"GlobalMaxPool", global_pool<Pool::kMax>}};
}

}  // namespace octet::dense
