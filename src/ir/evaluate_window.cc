// Evaluation of operators that slide a window: convolutions, pools, LRN. Any number of spatial axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/evaluate_parts.h"
#include "ir/evaluate_rules.h"
#include "ir/infer.h"

namespace octet::ir {
namespace {

Shape spatial(const Shape& shape) {
  return {shape.begin() + 2, shape.end()};
}

size_t count_of(const Shape& shape) {
  return static_cast<size_t>(element_count(shape));
}

// One tap of a window that lies on the image: its number, and its place among the pixels of a channel.
struct Tap {
  size_t number, place;
};

// How many of the offsets 0, step, 2 * step ... of `count` lie below `limit`.
int64_t offsets_below(int64_t limit, int64_t step, int64_t count) {
  return limit <= 0 ? 0 : std::min(count, (limit - 1) / step + 1);
}

// The taps of the window at `position`. `padded`: how many more of them lie where the stated padding reaches. Takes as
// long as there are taps: a file may state a window that is far larger than its image.
std::vector<Tap> taps_at(const std::vector<int64_t>& position, const Shape& image, const WindowGeometry& g,
                         int64_t* padded = nullptr) {
  std::vector<int64_t> first(image.size());
  Shape inside(image.size());
  int64_t in_padding = 1;
  for (size_t d = 0; d < image.size(); ++d) {
    const int64_t start = position[d] * g.strides[d] - g.pads[d];
    first[d] = offsets_below(-start, g.dilations[d], g.kernel[d]);
    inside[d] = std::max<int64_t>(offsets_below(image[d] - start, g.dilations[d], g.kernel[d]) - first[d], 0);
    const int64_t reached = offsets_below(image[d] + g.pads[d + image.size()] - start, g.dilations[d], g.kernel[d]);
    if (__builtin_mul_overflow(in_padding, reached, &in_padding)) in_padding = std::numeric_limits<int64_t>::max();
  }
  std::vector<Tap> taps;
  for_each_index(inside, [&](const std::vector<int64_t>& k) {
    size_t number = 0;
    int64_t place = 0;
    for (size_t d = 0; d < image.size(); ++d) {
      const int64_t tap = first[d] + k[d];
      number = number * static_cast<size_t>(g.kernel[d]) + static_cast<size_t>(tap);
      place = place * image[d] + position[d] * g.strides[d] - g.pads[d] + tap * g.dilations[d];
    }
    taps.push_back({number, static_cast<size_t>(place)});
  });
  if (padded) *padded += in_padding - static_cast<int64_t>(taps.size());
  return taps;
}

// Convolution of images, in rows: what evaluate_conv computes below, with the sums in the same order, but many times as
// fast. `y` holds the biases.
void add_image_products(const std::vector<double>& x, const std::vector<double>& w, const Shape& x_shape,
                        const Shape& w_shape, const Shape& shape, size_t of_group, const WindowGeometry& g,
                        std::vector<double>& y) {
  const int64_t in_height = x_shape[2], in_width = x_shape[3], height = shape[2], width = shape[3], depth = w_shape[1];
  const int64_t window = w_shape[2] * w_shape[3];
  // The first and the end of the positions whose tap at `offset` lies on the image.
  const auto first_inside = [](int64_t offset, int64_t stride) { return offset >= 0 ? 0 : (-offset - 1) / stride + 1; };
  const auto end_inside = [](int64_t offset, int64_t stride, int64_t size, int64_t count) {
    return offset >= size ? 0 : std::min(count, (size - 1 - offset) / stride + 1);
  };
  for (int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
    const int64_t filter = plane % shape[1], image = plane / shape[1];
    const int64_t first_channel = filter / static_cast<int64_t>(of_group) * depth;
    double* const to = y.data() + plane * height * width;
    for (int64_t c = 0; c < depth; ++c) {
      const double* const from = x.data() + (image * x_shape[1] + first_channel + c) * in_height * in_width;
      for (int64_t tap = 0; tap < window; ++tap) {
        const double weight = w[static_cast<size_t>((filter * depth + c) * window + tap)];
        const int64_t dy = tap / w_shape[3] * g.dilations[0] - g.pads[0], sy = g.strides[0];
        const int64_t dx = tap % w_shape[3] * g.dilations[1] - g.pads[1], sx = g.strides[1];
        const int64_t x0 = first_inside(dx, sx), x1 = end_inside(dx, sx, in_width, width);
        for (int64_t row = first_inside(dy, sy); row < end_inside(dy, sy, in_height, height); ++row) {
          double* const sums = to + row * width;
          const double* const pixels = from + (row * sy + dy) * in_width + dx;
          for (int64_t i = x0; i < x1; ++i) sums[i] += weight * pixels[i * sx];
        }
      }
    }
  }
}

}  // namespace

Tensors evaluate_conv(const Node& node, MemoryBudget& budget) {
  const Shape &x_shape = tensor_of(node, 0).shape(), &w_shape = tensor_of(node, 1).shape(), &shape = output_shape(node);
  if (!is_float(node.output()->type.data_type)) return std::nullopt;
  budget.charge(8 * element_count(shape));
  const std::vector<double> x = doubles_of(node, 0), w = doubles_of(node, 1);
  const Shape image = spatial(x_shape), kernel = spatial(w_shape);
  const WindowGeometry g = window_geometry(node, image, kernel);
  const size_t pixels = count_of(image), taps_count = count_of(kernel), positions = count_of(spatial(shape));
  const auto in_channels = static_cast<size_t>(x_shape[1]), depth = static_cast<size_t>(w_shape[1]),
             filters = static_cast<size_t>(shape[1]);
  const size_t of_group = std::max<size_t>(filters / static_cast<size_t>(node.get_int("group", 1)), 1);
  const std::vector<double> bias = node.has_input(2) ? doubles_of(node, 2) : std::vector<double>(filters, 0.0);
  std::vector<double> y(count_of(shape));
  if (image.size() == 2) {
    for (size_t i = 0; i < y.size(); ++i) y[i] = bias[i / positions % filters];
    add_image_products(x, w, x_shape, w_shape, shape, of_group, g, y);
    return only_output(node, y);
  }
  size_t position = 0;
  for_each_index(spatial(shape), [&](const std::vector<int64_t>& at) {
    const std::vector<Tap> taps = taps_at(at, image, g);
    for (size_t i = 0; i < y.size() / positions; ++i) {
      const size_t filter = i % filters;
      const double* from = x.data() + (i / filters * in_channels + filter / of_group * depth) * pixels;
      const double* weights = w.data() + filter * depth * taps_count;
      double sum = bias[filter];
      for (size_t c = 0; c < depth; ++c)
        for (const Tap& tap : taps) sum += from[c * pixels + tap.place] * weights[c * taps_count + tap.number];
      y[i * positions + position] = sum;
    }
    ++position;
  });
  return only_output(node, y);
}

// Pixel i of the input adds to the window at i of the output.
Tensors evaluate_conv_transpose(const Node& node, MemoryBudget& budget) {
  const Shape &x_shape = tensor_of(node, 0).shape(), &w_shape = tensor_of(node, 1).shape(), &shape = output_shape(node);
  const bool stated_size = node.get_string("auto_pad", "NOTSET") != "NOTSET" || !node.get_ints("output_shape").empty();
  if (!is_float(node.output()->type.data_type) || stated_size) return std::nullopt;
  budget.charge(8 * element_count(shape));
  const std::vector<double> x = doubles_of(node, 0), w = doubles_of(node, 1);
  const Shape image = spatial(x_shape), kernel = spatial(w_shape), out = spatial(shape);
  const size_t n = image.size();
  const WindowGeometry g{kernel, node.get_ints("strides", Shape(n, 1)), node.get_ints("dilations", Shape(n, 1)),
                         node.get_ints("pads", Shape(2 * n, 0))};
  const size_t pixels = count_of(image), taps_count = count_of(kernel), positions = count_of(out);
  const auto in_channels = static_cast<size_t>(x_shape[1]), of_group = static_cast<size_t>(w_shape[1]),
             groups = static_cast<size_t>(node.get_int("group", 1));
  std::vector<double> y(count_of(shape), 0.0);
  size_t pixel = 0;
  for_each_index(image, [&](const std::vector<int64_t>& at) {
    const std::vector<Tap> taps = taps_at(at, out, g);
    for (size_t i = 0; i < x.size() / pixels; ++i) {
      const size_t channel = i % in_channels, group = channel / (in_channels / groups);
      for (size_t o = 0; o < of_group; ++o) {
        const double* weights = w.data() + (channel * of_group + o) * taps_count;
        double* to = y.data() + ((i / in_channels * groups + group) * of_group + o) * positions;
        for (const Tap& tap : taps) to[tap.place] += x[i * pixels + pixel] * weights[tap.number];
      }
    }
    ++pixel;
  });
  if (node.has_input(2)) {
    const std::vector<double> bias = doubles_of(node, 2);
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i / positions % bias.size()];
  }
  return only_output(node, y);
}

// Of all kinds, the global ones, too.
Tensors evaluate_pool(const Node& node, MemoryBudget& budget) {
  const Shape& shape = output_shape(node);
  const Shape image = spatial(tensor_of(node, 0).shape());
  const size_t n = image.size(), pixels = count_of(image), positions = count_of(spatial(shape));
  if (!is_float(node.output()->type.data_type) || pixels == 0) return std::nullopt;
  budget.charge(8 * element_count(shape));
  const bool average = node.kind == OpKind::kAveragePool || node.kind == OpKind::kGlobalAveragePool;
  const bool global = node.kind == OpKind::kGlobalAveragePool || node.kind == OpKind::kGlobalMaxPool;
  const WindowGeometry g = global ? WindowGeometry{image, Shape(n, 1), Shape(n, 1), Shape(2 * n, 0)}
                                  : window_geometry(node, image, node.get_ints("kernel_shape"));
  const std::vector<double> x = doubles_of(node, 0);
  std::vector<double> y(count_of(shape));
  size_t position = 0;
  for_each_index(spatial(shape), [&](const std::vector<int64_t>& at) {
    int64_t padded = 0;
    const std::vector<Tap> taps = taps_at(at, image, g, &padded);
    const double count =
        static_cast<double>(taps.size()) + (node.get_int("count_include_pad") != 0 ? static_cast<double>(padded) : 0.0);
    for (size_t i = 0; i < y.size() / positions; ++i) {
      double sum = 0, largest = -std::numeric_limits<double>::infinity();
      for (const Tap& tap : taps) {
        const double v = x[i * pixels + tap.place];
        sum += v, largest = std::max(largest, v);
      }
      y[i * positions + position] = average ? sum / count : largest;
    }
    ++position;
  });
  return only_output(node, y);
}

Tensors evaluate_lrn(const Node& node, MemoryBudget& budget) {
  const Shape& shape = output_shape(node);
  const int64_t size = node.get_int("size");
  if (size < 1) misfit(node, "size is ", size, ", expected 1 or more");
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  if (!is_float(node.output()->type.data_type) || shape.size() < 2) return std::nullopt;
  budget.charge(8 * element_count(shape));
  const std::vector<double> x = doubles_of(node, 0);
  const int64_t channels = shape[1], pixels = element_count(spatial(shape));
  std::vector<double> y = x;
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t channel = i / pixels % channels;
    double squares = 0;
    for (int64_t c = std::max<int64_t>(-channel, -before); c <= std::min(channels - 1 - channel, after); ++c) {
      const double v = x[static_cast<size_t>(i + c * pixels)];
      squares += v * v;
    }
    const double norm = node.get_float("bias") + node.get_float("alpha") / static_cast<double>(size) * squares;
    y[static_cast<size_t>(i)] /= std::pow(norm, double{node.get_float("beta")});
  }
  return only_output(node, y);
}

}  // namespace octet::ir
