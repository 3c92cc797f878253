#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

using ir::Tensor;

// Opset 10 had two inputs and the coordinates of Upsample.
Nodes first_resize(SourceNode node) {
  if (node.inputs.size() != 2) fail("has ", node.inputs.size(), " inputs, expected x and scales as in opset 10");
  node.inputs = {node.inputs[0], "", node.inputs[1]};
  node.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  node.attributes["nearest_mode"] = std::string("floor");
  return {node};
}

Nodes resize(SourceNode node, int opset, UpgradeContext& context) {
  if (opset < 11) return first_resize(std::move(node));
  const auto mode_at = node.attributes.find("coordinate_transformation_mode");
  const std::string* transformation =
      mode_at == node.attributes.end() ? nullptr : std::get_if<std::string>(&mode_at->second);
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.has_input(i) && is_empty_constant(node.inputs[i], context)) node.inputs[i].clear();
  // Only tf_crop_and_resize reads the region of interest.
  if (node.has_input(1) && (!transformation || *transformation != "tf_crop_and_resize")) node.inputs[1].clear();
  if (transformation && *transformation == "tf_half_pixel_for_nn") {
    // floor((x + 0.5) / scale) = round_prefer_ceil((x + 0.5) / scale - 0.5): the same with half_pixel.
    const auto mode = take<std::string>(node, "mode").value_or("nearest");
    const auto nearest = take<std::string>(node, "nearest_mode").value_or("round_prefer_floor");
    if (mode != "nearest" || nearest != "floor")
      fail(
          "coordinate_transformation_mode tf_half_pixel_for_nn is supported only for mode nearest with nearest_mode "
          "floor, not ",
          mode, " with ", nearest);
    node.attributes["mode"] = mode;
    node.attributes["coordinate_transformation_mode"] = std::string("half_pixel");
    node.attributes["nearest_mode"] = std::string("round_prefer_ceil");
  }
  return {node};
}

Nodes upsample(SourceNode node, int, UpgradeContext& context) {
  std::string mode = take<std::string>(node, "mode").value_or("nearest");
  if (mode == "bilinear") mode = "linear";
  std::string scales = node.has_input(1) ? node.inputs[1] : std::string();
  if (const auto values = take<std::vector<float>>(node, "scales")) {
    const auto count = static_cast<int64_t>(values->size());
    scales = context.add_constant(node.outputs.at(0) + "_scales", Tensor::of<float>({count}, *values));
  }
  if (scales.empty()) fail("has no scales");
  node.op = "Resize";
  node.inputs = {node.inputs.at(0), "", scales};
  node.attributes["mode"] = mode;
  node.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  node.attributes["nearest_mode"] = std::string("floor");
  return {node};
}

}  // namespace

std::vector<UpgradeRow> resize_rules() {
  return {{"Resize", resize}, {"Upsample", upsample}};
}

}  // namespace octet::onnx
