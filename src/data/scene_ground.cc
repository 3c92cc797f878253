#include "data/scene_ground.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "data/resize.h"

namespace octet::data {
namespace {

constexpr int kNoise = 12;  // greatest change of a pixel of the smooth ground
constexpr double kTurn = 2 * std::numbers::pi;

uint8_t byte_of_color(double value) {
  return static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

// The square waves of `x` with a period of 1.
double square(double x) {
  return x - std::floor(x) < 0.5 ? -1 : 1;
}

// A plane of values from -1 to 1, row after row.
using Pattern = std::vector<double>;

// Of every pixel's coordinates along and across a random direction, in units of a random length.
template <typename Function>
Pattern directed(const Image& image, CounterRng& random, const Function& function) {
  const double angle = random.uniform(0, kTurn), length = std::exp(random.uniform(std::log(5.0), std::log(70.0)));
  const double c = std::cos(angle) / length, s = std::sin(angle) / length;
  Pattern out;
  out.reserve(static_cast<size_t>(image.height) * static_cast<size_t>(image.width));
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) out.push_back(function(c * x + s * y, c * y - s * x));
  return out;
}

Pattern clouds(const Image& image, CounterRng& random) {
  Pattern out(static_cast<size_t>(image.height) * static_cast<size_t>(image.width), 0.0);
  double share = 0.5;
  for (int cell = 64; cell >= 8; cell /= 2, share /= 2) {
    Image field{image.height / cell + 2, image.width / cell + 2, 1, {}};
    field.pixels.resize(field.size());
    for (uint8_t& value : field.pixels) value = static_cast<uint8_t>(random.below(256));
    const Image smooth = resize_bilinear(field, image.height, image.width);
    for (size_t i = 0; i < out.size(); ++i) out[i] += share * (smooth.pixels[i] / 127.5 - 1);
  }
  return out;
}

Pattern pattern(const Image& image, CounterRng& random) {
  switch (random.below(5)) {
    case 0:
      return directed(image, random, [](double along, double) { return std::sin(kTurn * along); });
    case 1:
      return directed(image, random, [](double along, double) { return square(along); });
    case 2:
      return directed(image, random, [](double along, double across) { return square(along) * square(across); });
    case 3: {
      const double x = random.uniform(-5, 5), y = random.uniform(-5, 5);
      return directed(image, random, [x, y](double along, double across) {
        return std::sin(kTurn * std::hypot(along - x, across - y));
      });
    }
    default:
      return clouds(image, random);
  }
}

struct Shape {
  int64_t kind = 0;
  double x = 0, y = 0, c = 1, s = 0, a = 1, b = 1;  // middle, direction, half of length and breadth, pixels
  double stripes = 0;                               // a length, pixels; 0: flat
  std::array<double, 3> color = {}, second = {};

  // In units of the shape's halves, along and across.
  bool holds(double u, double v) const {
    const double r = u * u + v * v;
    switch (kind) {
      case 0:
        return r < 1;
      case 1:
        return r < 1 && r > 0.4;
      case 2:
        return std::abs(u) < 1 && std::abs(v) < 1;
      default:
        return v < 1 && v > -1 && 2 * std::abs(u) < 1 - v;
    }
  }
};

Shape random_shape(const Image& image, int min_side, int max_side, CounterRng& random) {
  Shape shape{.kind = random.below(4)};
  shape.x = random.uniform(0, image.width), shape.y = random.uniform(0, image.height);
  const double angle = random.uniform(0, kTurn);
  shape.c = std::cos(angle), shape.s = std::sin(angle);
  shape.a = random.uniform(min_side, max_side) / 2;
  shape.b = shape.a * random.uniform(0.2, 1);
  const double stripes = random.uniform(4, 12);
  shape.stripes = random.below(2) ? stripes : 0;
  for (double& value : shape.color) value = random.uniform(20, 250);
  for (double& value : shape.second) value = random.uniform(20, 250);
  return shape;
}

void paint(Image& image, const Shape& shape) {
  const int reach = static_cast<int>(std::ceil(std::hypot(shape.a, shape.b)));
  const int x0 = std::max(0, static_cast<int>(shape.x) - reach), y0 = std::max(0, static_cast<int>(shape.y) - reach);
  const int x1 = std::min(image.width, static_cast<int>(shape.x) + reach + 1);
  const int y1 = std::min(image.height, static_cast<int>(shape.y) + reach + 1);
  for (int y = y0; y < y1; ++y)
    for (int x = x0; x < x1; ++x) {
      const double dx = x + 0.5 - shape.x, dy = y + 0.5 - shape.y;
      const double along = shape.c * dx + shape.s * dy, across = shape.c * dy - shape.s * dx;
      if (!shape.holds(along / shape.a, across / shape.b)) continue;
      const bool other = shape.stripes > 0 && square(along / shape.stripes) > 0;
      for (size_t c = 0; c < 3; ++c)
        image.row(y)[static_cast<size_t>(x) * 3 + c] = byte_of_color(other ? shape.second[c] : shape.color[c]);
    }
}

}  // namespace

Image smooth_ground(int height, int width, CounterRng& random) {
  Image field{.height = 3, .width = 5, .channels = 3, .pixels = std::vector<uint8_t>(3 * 5 * 3)};
  for (uint8_t& value : field.pixels) value = static_cast<uint8_t>(40 + random.below(140));
  Image ground = resize_bilinear(field, height, width);
  for (uint8_t& value : ground.pixels)
    value = static_cast<uint8_t>(std::clamp<int64_t>(value + random.below(2 * kNoise + 1) - kNoise, 0, 255));
  return ground;
}

void add_texture(Image& ground, CounterRng& random) {
  for (int layer = 0; layer < 2; ++layer) {
    std::array<double, 3> heights{};
    for (double& height : heights) height = random.uniform(-45, 45);
    const Pattern values = pattern(ground, random);
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t c = 0; c < 3; ++c) {
        uint8_t& byte = ground.pixels[i * 3 + c];
        byte = byte_of_color(byte + heights[c] * values[i]);
      }
  }
}

void add_clutter(Image& ground, int shapes, int min_side, int max_side, CounterRng& random) {
  for (int i = 0; i < shapes; ++i) paint(ground, random_shape(ground, min_side, max_side, random));
}

}  // namespace octet::data
