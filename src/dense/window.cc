#include "dense/window.h"

#include <algorithm>

namespace octet::dense {
namespace {

// So that no sum or product of a few of them is beyond int64.
constexpr int64_t kMost = int64_t{1} << 30;

Shape list_of(const AttributeReader& attributes, const char* key, size_t count, int64_t fallback, int64_t least) {
  const auto given = attributes.ints_attribute(key);
  if (!given || given->empty()) return Shape(count, fallback);
  require(given->size() == count, "attribute '", key, "' has ", given->size(), " numbers, expected ", count);
  for (const int64_t v : *given)
    require(v >= least && v <= kMost, "attribute '", key, "' has ", v, ", expected ", least, " to ", kMost);
  return *given;
}

Window stated_window(const AttributeReader& attributes, std::span<const int64_t> image,
                     std::span<const int64_t> kernel) {
  const size_t n = image.size();
  Window w;
  w.kernel.assign(kernel.begin(), kernel.end());
  for (const int64_t k : w.kernel) require(k >= 1 && k <= kMost, "a window of ", shape_text(w.kernel), " is empty");
  for (const int64_t d : image) require(d <= kMost, "an image of ", shape_text({image.begin(), image.end()}));
  const auto stated = attributes.ints_attribute("kernel_shape");
  require(!stated || stated->empty() || *stated == w.kernel, "kernel_shape is not ", shape_text(w.kernel),
          ", the shape of the weights");
  w.strides = list_of(attributes, "strides", n, 1, 1);
  w.dilations = list_of(attributes, "dilations", n, 1, 1);
  const Shape pads = list_of(attributes, "pads", 2 * n, 0, 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(n));
  w.after.assign(pads.begin() + static_cast<int64_t>(n), pads.end());
  return w;
}

std::string auto_pad_of(const AttributeReader& attributes) {
  const std::string mode = attributes.string_attribute("auto_pad", "NOTSET");
  require(mode == "NOTSET" || mode == "VALID" || mode == "SAME_UPPER" || mode == "SAME_LOWER", "auto_pad is '", mode,
          "', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  return mode;
}

// Pixels that a window covers, from its first tap to its last.
int64_t extent(const Window& w, size_t axis) {
  return (w.kernel[axis] - 1) * w.dilations[axis] + 1;
}

void share_padding(Window& w, size_t axis, int64_t total, bool upper) {
  const int64_t less = total / 2;
  w.before[axis] = upper ? less : total - less;
  w.after[axis] = total - w.before[axis];
}

}  // namespace

Window window_of(const AttributeReader& attributes, std::span<const int64_t> image, std::span<const int64_t> kernel,
                 bool may_ceil) {
  Window w = stated_window(attributes, image, kernel);
  const std::string mode = auto_pad_of(attributes);
  const bool ceil = may_ceil && attributes.int_attribute("ceil_mode", 0) != 0;
  for (size_t d = 0; d < image.size(); ++d) {
    if (mode != "NOTSET") w.before[d] = w.after[d] = 0;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t places = (image[d] + w.strides[d] - 1) / w.strides[d];
      share_padding(w, d, std::max<int64_t>((places - 1) * w.strides[d] + extent(w, d) - image[d], 0),
                    mode == "SAME_UPPER");
    }
    const int64_t room = image[d] + w.before[d] + w.after[d] - extent(w, d);
    require(room >= 0, "a window of ", extent(w, d), " pixels does not fit an image of ", image[d],
            " with a padding of ", w.before[d], " and ", w.after[d]);
    int64_t places = (ceil ? room + w.strides[d] - 1 : room) / w.strides[d] + 1;
    // A window that ceil_mode adds begins on the image or the padding before it.
    if (ceil && (places - 1) * w.strides[d] >= image[d] + w.before[d]) --places;
    w.out.push_back(places);
  }
  return w;
}

Window transposed_window_of(const AttributeReader& attributes, std::span<const int64_t> image,
                            std::span<const int64_t> kernel) {
  const size_t n = image.size();
  Window w = stated_window(attributes, image, kernel);
  const std::string mode = auto_pad_of(attributes);
  const Shape more = list_of(attributes, "output_padding", n, 0, 0);
  const auto stated = attributes.ints_attribute("output_shape");
  const bool sized = stated && !stated->empty();
  require(!sized || stated->size() == n, "output_shape has ", sized ? stated->size() : 0, " numbers, expected ", n);
  for (size_t d = 0; d < n; ++d) {
    require(image[d] >= 1, "an image of ", shape_text({image.begin(), image.end()}), " is empty");
    const int64_t whole = (image[d] - 1) * w.strides[d] + extent(w, d) + more[d];
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (mode == "VALID") w.before[d] = w.after[d] = 0;
    if (sized || same) {
      const int64_t out = sized ? (*stated)[d] : image[d] * w.strides[d];
      require(out >= 1 && out <= kMost, "output_shape has ", out);
      share_padding(w, d, std::max<int64_t>(whole - out, 0), mode == "SAME_UPPER");
      w.out.push_back(out);
    } else {
      w.out.push_back(whole - w.before[d] - w.after[d]);
    }
    require(w.out[d] >= 1, "a padding of ", w.before[d], " and ", w.after[d], " leaves nothing of ", whole, " pixels");
  }
  return w;
}

Taps taps_inside(int64_t start, int64_t dilation, int64_t kernel, int64_t image) {
  const auto below = [&](int64_t limit) { return limit <= 0 ? 0 : std::min(kernel, (limit - 1) / dilation + 1); };
  const int64_t first = below(-start);
  return {first, std::max(below(image - start), first)};
}

}  // namespace octet::dense
