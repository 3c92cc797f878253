// GridSample: images read at computed places, over any of one to three axes.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "dense/operators.h"

namespace octet::dense {
namespace {

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct Settings {
  Mode mode = Mode::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;  // -1 and 1 are the centers of the outer pixels, and not their outer edges
};

Settings settings_of(const AttributeReader& attributes) {
  Settings out;
  const std::string mode = attributes.string_attribute("mode", "linear");
  const std::string padding = attributes.string_attribute("padding_mode", "zeros");
  if (mode == "nearest")
    out.mode = Mode::kNearest;
  else if (mode == "cubic")
    out.mode = Mode::kCubic;
  else
    require(mode == "linear", "mode is '", mode, "', expected linear, nearest or cubic");
  if (padding == "border")
    out.padding = Padding::kBorder;
  else if (padding == "reflection")
    out.padding = Padding::kReflection;
  else
    require(padding == "zeros", "padding_mode is '", padding, "', expected zeros, border or reflection");
  out.align_corners = attributes.int_attribute("align_corners", 0) != 0;
  return out;
}

// One axis of the image.
class Axis {
 public:
  static constexpr int kMostTaps = 4;
  struct Taps {
    int count = 0;
    int64_t at[kMostTaps] = {};
    float weight[kMostTaps] = {};

    void add(int64_t place, float weighs) { at[count] = place, weight[count++] = weighs; }
  };

  Axis(int64_t length, const Settings& settings)
      : length_(length),
        settings_(settings),
        low_(settings.align_corners ? 0.0 : -0.5),
        high_(settings.align_corners ? static_cast<double>(length - 1) : static_cast<double>(length) - 0.5) {}

  // The pixels about a coordinate, -1 to 1 across the image, that lie in it, and what each weighs. A coordinate that
  // is no finite number is as far outside as can be, which zeros are; the other paddings read the first pixel there.
  Taps taps(float coordinate) const {
    Taps out;
    const auto size = static_cast<float>(length_);
    float x = settings_.align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
    if (!std::isfinite(x)) {
      if (settings_.padding != Padding::kZeros) out.add(0, 1);
      return out;
    }
    if (settings_.mode == Mode::kNearest) x = std::nearbyint(x);
    if (settings_.padding == Padding::kReflection && (x < low_ || x > high_)) x = static_cast<float>(reflected(x));
    // By border, pixels are moved into the image and the place is not, as PyTorch and ONNX Runtime do it; to ONNX's
    // own reference, which moves the place, that makes a difference in cubic mode alone.
    x = std::clamp(x, -3.0f, size + 2);  // beyond these, all pixels about the place lie outside
    const float floor = std::floor(x), part = x - floor;
    const auto first = static_cast<int64_t>(floor);
    switch (settings_.mode) {
      case Mode::kNearest:
        add(out, first, 1);
        break;
      case Mode::kLinear:
        add(out, first, 1 - part);
        add(out, first + 1, part);
        break;
      case Mode::kCubic:
        add(out, first - 1, far(part + 1));
        add(out, first, near(part));
        add(out, first + 1, near(1 - part));
        add(out, first + 2, far(2 - part));
    }
    return out;
  }

 private:
  // Keys' cubic convolution with -0.75, for pixels within one and between one and two of the place.
  static constexpr float kCubic = -0.75f;
  static float near(float x) { return ((kCubic + 2) * x - (kCubic + 3)) * x * x + 1; }
  static float far(float x) { return ((kCubic * x - 5 * kCubic) * x + 8 * kCubic) * x - 4 * kCubic; }

  // Thrown back by the ends of the image until it lies between them.
  double reflected(double x) const {
    const double range = high_ - low_;
    if (range <= 0) return 0;
    const double way = std::fmod(std::fabs(x - low_), 2 * range);
    return way <= range ? low_ + way : high_ - (way - range);
  }

  void add(Taps& out, int64_t place, float weight) const {
    if (place < 0 || place >= length_) {
      if (settings_.padding == Padding::kZeros) return;
      const double inside = settings_.padding == Padding::kReflection ? reflected(static_cast<double>(place))
                                                                      : static_cast<double>(place);
      place = static_cast<int64_t>(std::clamp(inside, 0.0, static_cast<double>(length_ - 1)));
    }
    out.add(place, weight);
  }

  int64_t length_;
  Settings settings_;
  double low_, high_;  // where the image ends
};

struct Pixel {
  int64_t at;
  float weight;
};

// The pixels about a place: every combination of those of its axes. The grid has the last axis first.
void pixels_of(const std::vector<Axis>& axes, const Shape& steps, const float* place, std::vector<Pixel>& out) {
  out.assign(1, {0, 1});
  for (size_t a = 0; a < axes.size(); ++a) {
    const Axis::Taps taps = axes[a].taps(place[axes.size() - 1 - a]);
    const size_t before = out.size();
    for (int t = 1; t < taps.count; ++t)
      for (size_t i = 0; i < before; ++i)
        out.push_back({out[i].at + taps.at[t] * steps[a], out[i].weight * taps.weight[t]});
    if (taps.count == 0) return out.clear();
    for (size_t i = 0; i < before; ++i) out[i].at += taps.at[0] * steps[a], out[i].weight *= taps.weight[0];
  }
}

Tensors grid_sample(const Call& call) {
  const Tensor &x = call.input(0), &grid = call.input(1);
  require(x.type() == Type::kFloat && grid.type() == Type::kFloat, "X is ", type_name(x.type()), " and grid ",
          type_name(grid.type()), ", expected float32");
  const size_t rank = x.rank();
  require(
      rank >= 3 && rank <= 5 && grid.rank() == rank && grid.shape()[0] == x.shape()[0] &&
          grid.shape()[rank - 1] == static_cast<int64_t>(rank) - 2,
      "X ", shape_text(x.shape()), " and grid ", shape_text(grid.shape()),
      " do not fit each other; expected [N, C, H, W] and [N, rows, columns, 2], or the same over one or three axes");
  const Settings settings = settings_of(call);
  const Shape image(x.shape().begin() + 2, x.shape().end());
  const int64_t pixels = element_count(image), places = count_of(grid.shape(), 1, rank - 1), channels = x.shape()[1];
  require(pixels > 0, "the images ", shape_text(x.shape()), " have no pixels");
  Shape shape = {x.shape()[0], channels};
  shape.insert(shape.end(), grid.shape().begin() + 1, grid.shape().end() - 1);
  Tensor out = call.memory().make<float>(shape);
  float* const to = out.mutable_values<float>().data();
  std::vector<Axis> axes;
  for (const int64_t length : image) axes.emplace_back(length, settings);
  const Shape steps = steps_of(image);
  constexpr int64_t kBlock = 256;  // places at a time
  const int64_t blocks = (places + kBlock - 1) / kBlock;
  parallel_for(x.shape()[0] * blocks, out.size() > 1 << 16 ? call.threads() : 1, [&](int64_t piece) {
    const int64_t n = piece / blocks, first = piece % blocks * kBlock, last = std::min(places, first + kBlock);
    const float* from = x.values<float>().data() + n * channels * pixels;
    const float* place = grid.values<float>().data() + n * places * static_cast<int64_t>(image.size());
    std::vector<Pixel> about;
    for (int64_t p = first; p < last; ++p) {
      pixels_of(axes, steps, place + p * static_cast<int64_t>(image.size()), about);
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (const Pixel& pixel : about) sum += pixel.weight * from[c * pixels + pixel.at];
        to[(n * channels + c) * places + p] = sum;
      }
    }
  });
  return {out};
}

}  // namespace

std::vector<Operator> sampling_operators() {
  return {{"GridSample",
           grid_sample,
           2,
           2,
           1,
           Typing::kFirst,
           {"mode", "padding_mode", "align_corners"},
           [](const AttributeReader& attributes) { settings_of(attributes); }}};
}

}  // namespace octet::dense
