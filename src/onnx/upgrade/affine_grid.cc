// AffineGrid: the places of an image's pixels, times the matrices.
#include <algorithm>

#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

using ir::Shape;

constexpr int64_t kMostPlaces = 1 << 24;

// Where pixel `i` of `length` lies between -1 and 1: the outer centers are the ends, or the outer edges are.
float place(int64_t i, int64_t length, bool align_corners) {
  const auto at = static_cast<double>(i), all = static_cast<double>(length);
  if (!align_corners) return static_cast<float>((2 * at + 1) / all - 1);
  return length == 1 ? 0.0f : static_cast<float>(2 * at / (all - 1) - 1);
}

// The places of all pixels, the last axis first, and a one: [pixels, axes + 1].
ir::Tensor places_of(const Shape& image, bool align_corners) {
  const int64_t pixels = ir::element_count(image);
  const size_t axes = image.size();
  std::vector<float> out;
  std::vector<int64_t> index(axes, 0);
  for (int64_t p = 0; p < pixels; ++p) {
    for (size_t a = axes; a-- > 0;) out.push_back(place(index[a], image[a], align_corners));
    out.push_back(1);
    for (size_t a = axes; a-- > 0;) {
      if (++index[a] < image[a]) break;
      index[a] = 0;
    }
  }
  return ir::Tensor::of<float>({pixels, static_cast<int64_t>(axes) + 1}, out);
}

Nodes affine_grid(SourceNode node, int, UpgradeContext& context) {
  if (node.inputs.size() != 2) fail("has ", node.inputs.size(), " inputs, expected 2");
  const bool align_corners = take<int64_t>(node, "align_corners").value_or(0) != 0;
  require_no_attributes(node);
  if (context.data_type(node.inputs[0]) != ir::DataType::kFloat32) fail("is supported for float32 only");
  const Shape theta = known_shape(node.inputs[0], context);
  const std::vector<int64_t> size = constant_ints(node, 1, "size", context);
  if (size.size() != 4 && size.size() != 5) fail("size has ", size.size(), " numbers, expected 4 or 5");
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if (theta.size() != 3 || (theta[0] != ir::kDynamic && theta[0] != size[0]) || theta[1] != axes ||
      theta[2] != axes + 1)
    fail("theta is ", ir::shape_string(theta), ", expected ", ir::shape_string({size[0], axes, axes + 1}));
  const Shape image(size.begin() + 2, size.end());
  int64_t pixels = 1;
  for (const int64_t length : image) {
    if (length < 1 || length > kMostPlaces / pixels)
      fail("makes a grid of ", ir::shape_string(image), ", expected 1 to ", kMostPlaces, " places");
    pixels *= length;
  }
  Formula f(node, context);
  const std::string places = context.add_constant(node.outputs[0] + "_places", places_of(image, align_corners));
  const std::string columns = f("Transpose", {node.inputs[0]}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  std::vector<int64_t> target = {0};
  target.insert(target.end(), image.begin(), image.end());
  target.push_back(axes);
  f.reshape(f("MatMul", {places, columns}), target);
  return f.nodes();
}

}  // namespace

std::vector<UpgradeRow> affine_grid_rules() {
  return {{"AffineGrid", affine_grid}};
}

}  // namespace octet::onnx
