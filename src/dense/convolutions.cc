// Conv and ConvTranspose over any number of axes, as products of matrices.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "dense/matrix_product.h"
#include "dense/window.h"

namespace octet::dense {
namespace {

constexpr int64_t kBlockElements =
    1 << 18;  // of the pixels under the windows of one block: about what a core's cache holds

Shape behind_channels(const Tensor& t) {
  return {t.shape().begin() + 2, t.shape().end()};
}

struct Layer {
  int64_t images, channels, groups, pixels, taps;
  const float *x, *w, *bias;  // bias: null where there is none
};

Layer layer_of(const Call& call, bool transposed) {
  const Tensor &x = call.input(0), &w = call.input(1);
  require(x.type() == Type::kFloat && w.type() == Type::kFloat, "is there for float32 only");
  require(x.rank() >= 3 && x.rank() == w.rank(), "images ", shape_text(x.shape()), " and weights ",
          shape_text(w.shape()), " do not fit each other");
  const int64_t groups = call.int_attribute("group", 1), channels = x.shape()[1];
  require(groups >= 1 && channels >= 1 && channels % groups == 0 && w.shape()[0] % groups == 0, channels,
          " channels and ", w.shape()[0], " filters cannot be divided into ", groups, " groups");
  const int64_t expected = transposed ? w.shape()[0] : w.shape()[1] * groups;
  require(channels == expected, "the images have ", channels, " channels, the weights take ", expected);
  const int64_t filters = transposed ? w.shape()[1] * groups : w.shape()[0];
  const Tensor* bias = call.optional(2);
  require(!bias || (bias->type() == Type::kFloat && bias->shape() == Shape{filters}), "the bias should be ", filters,
          " floats");
  return {x.shape()[0],
          channels,
          groups,
          element_count(behind_channels(x)),
          element_count(behind_channels(w)),
          x.values<float>().data(),
          w.values<float>().data(),
          bias ? bias->values<float>().data() : nullptr};
}

// Where the taps of the windows `first` to `end` lie in a channel of `image`, tap by tap; -1: beside the image.
std::vector<int64_t> places_of_taps(const Window& w, const Shape& image, int64_t first, int64_t end) {
  const int64_t count = end - first, taps = element_count(w.kernel);
  const size_t n = image.size();
  std::vector<int64_t> out(static_cast<size_t>(count * taps));
  Shape position(n), tap(n, 0);
  int64_t rest = first;
  for (size_t d = n; d-- > 0;) position[d] = rest % w.out[d], rest /= w.out[d];
  const Shape start = position;
  for (int64_t t = 0; t < taps; ++t) {
    position = start;
    for (int64_t i = 0; i < count; ++i) {
      int64_t place = 0;
      for (size_t d = 0; d < n; ++d) {
        const int64_t at = position[d] * w.strides[d] - w.before[d] + tap[d] * w.dilations[d];
        place = place < 0 || at < 0 || at >= image[d] ? -1 : place * image[d] + at;
      }
      out[static_cast<size_t>(t * count + i)] = place;
      for (size_t d = n; d-- > 0 && ++position[d] == w.out[d];) position[d] = 0;
    }
    for (size_t d = n; d-- > 0 && ++tap[d] == w.kernel[d];) tap[d] = 0;
  }
  return out;
}

Tensors conv(const Call& call) {
  const Layer layer = layer_of(call, false);
  const Shape image = behind_channels(call.input(0)), kernel = behind_channels(call.input(1));
  const Window w = window_of(call, image, kernel);
  const int64_t filters = call.input(1).shape()[0], of_group = filters / layer.groups,
                depth = layer.channels / layer.groups, positions = element_count(w.out), k = depth * layer.taps;
  Shape shape{layer.images, filters};
  shape.insert(shape.end(), w.out.begin(), w.out.end());
  Tensor out = call.memory().make<float>(shape);
  if (out.size() == 0) return {out};
  float* const to = out.mutable_values<float>().data();
  const int64_t block = std::clamp<int64_t>(kBlockElements / std::max<int64_t>(k, 1) / 32 * 32, 32, 4096);
  const int64_t blocks = (positions + block - 1) / block;
  const bool much = out.size() * k > 1 << 20;
  // A block of places at a time, for all groups of all images; each sum is taken in one order, whoever takes it.
  parallel_for(blocks * layer.images, much ? call.threads() : 1, [&](int64_t item) {
    const int64_t n = item / blocks, first = item % blocks * block, end = std::min(first + block, positions);
    const int64_t count = end - first;
    const std::vector<int64_t> places = places_of_taps(w, image, first, end);
    std::vector<float> columns(static_cast<size_t>(k * count)), sums(static_cast<size_t>(of_group * count));
    for (int64_t g = 0; g < layer.groups; ++g) {
      for (int64_t c = 0; c < depth; ++c) {
        const float* const from = layer.x + (n * layer.channels + g * depth + c) * layer.pixels;
        float* const column = columns.data() + c * layer.taps * count;
        for (size_t i = 0; i < places.size(); ++i) column[i] = places[i] < 0 ? 0.0f : from[places[i]];
      }
      matrix_product(layer.w + g * of_group * k, columns.data(), sums.data(), of_group, k, count, 1);
      for (int64_t f = 0; f < of_group; ++f) {
        const int64_t filter = g * of_group + f;
        const float bias = layer.bias ? layer.bias[filter] : 0.0f;
        float* const row = to + (n * filters + filter) * positions + first;
        for (int64_t i = 0; i < count; ++i) row[i] = sums[static_cast<size_t>(f * count + i)] + bias;
      }
    }
  });
  return {out};
}

// Each pixel of the image is multiplied by a window, and added where the window at it lies in the output.
Tensors conv_transpose(const Call& call) {
  const Layer layer = layer_of(call, true);
  const Shape image = behind_channels(call.input(0)), kernel = behind_channels(call.input(1));
  const Window stated = transposed_window_of(call, image, kernel);
  Window w = stated;
  w.out = image;  // the places of windows; what they lie on is the output
  const int64_t of_group = call.input(1).shape()[1], filters = of_group * layer.groups,
                depth = layer.channels / layer.groups, out_pixels = element_count(stated.out);
  Shape shape{layer.images, filters};
  shape.insert(shape.end(), stated.out.begin(), stated.out.end());
  Tensor out = call.memory().make<float>(shape);
  if (out.size() == 0) return {out};
  float* const to = out.mutable_values<float>().data();
  for (int64_t plane = 0; plane < layer.images * filters; ++plane)
    std::fill_n(to + plane * out_pixels, out_pixels, layer.bias ? layer.bias[plane % filters] : 0.0f);
  const int64_t rows = of_group * layer.taps;
  Tensor weights = call.memory().make<float>({layer.groups, rows, depth});
  float* const turned = weights.mutable_values<float>().data();
  for (int64_t g = 0; g < layer.groups; ++g)
    dense::transpose(layer.w + g * depth * rows, turned + g * depth * rows, depth, rows);
  const int64_t block = std::clamp<int64_t>(kBlockElements / std::max<int64_t>(rows, 1) / 32 * 32, 32, 4096);
  Tensor products = call.memory().make<float>({rows, std::min(block, layer.pixels)});
  Tensor pixels = call.memory().make<float>({depth, std::min(block, layer.pixels)});
  float *const made = products.mutable_values<float>().data(), *const read = pixels.mutable_values<float>().data();
  for (int64_t first = 0; first < layer.pixels; first += block) {
    const int64_t end = std::min(first + block, layer.pixels), count = end - first;
    const std::vector<int64_t> places = places_of_taps(w, stated.out, first, end);
    for (int64_t n = 0; n < layer.images; ++n)
      for (int64_t g = 0; g < layer.groups; ++g) {
        for (int64_t c = 0; c < depth; ++c)
          std::memcpy(read + c * count, layer.x + (n * layer.channels + g * depth + c) * layer.pixels + first,
                      static_cast<size_t>(count) * sizeof(float));
        matrix_product(turned + g * depth * rows, read, made, rows, depth, count, call.threads());
        for (int64_t o = 0; o < of_group; ++o) {
          float* const plane = to + (n * filters + g * of_group + o) * out_pixels;
          const float* const from = made + o * layer.taps * count;
          for (size_t i = 0; i < places.size(); ++i)
            if (places[i] >= 0) plane[places[i]] += from[i];
        }
      }
  }
  return {out};
}

}  // namespace

std::vector<Operator> convolution_operators() {
  return {
      {"Conv", conv, 2, 3, 1, Typing::kFirst, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}},
      {"ConvTranspose",
       conv_transpose,
       2,
       3,
       1,
       Typing::kFirst,
       {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape", "pads", "strides"}}};
}

}  // namespace octet::dense
