#include "tasks/detectnet_v2/head.h"

#include <cmath>

#include "base/error.h"
#include "ir/infer.h"
#include "models/initialize.h"

namespace octet::tasks::detectnet_v2 {
namespace {

ir::Value* conv_1x1(ir::Graph& graph, ir::Value* x, const std::string& name, int64_t out, uint64_t seed,
                    const std::string& output) {
  const int64_t in = x->type.shape->at(1);
  const double bound = std::sqrt(6.0 / static_cast<double>(in + out));
  const std::string weight = name + ".weight";
  ir::Value* w = graph.add_constant(
      weight, ir::Tensor::of<float>({out, in, 1, 1}, models::uniform_values(out * in, bound, seed, weight)), true);
  ir::Value* b = graph.add_constant(name + ".bias",
                                    ir::Tensor::of<float>({out}, std::vector<float>(static_cast<size_t>(out))), true);
  ir::Node* node = graph.add_node(ir::OpKind::kConv, name, {x, w, b}, {output});
  ir::infer_node(*node);
  return node->output();
}

}  // namespace

ir::Graph add_head(models::Backbone backbone, int64_t classes, int64_t stride, uint64_t seed) {
  ir::Value* features = backbone.level(stride);
  ir::Graph& graph = backbone.graph;
  ir::Value* scores = conv_1x1(graph, features, "output_cov", classes, seed, "output_cov");
  graph.add_output(graph.add(ir::OpKind::kSigmoid, kCoverageOutput, {scores}));
  graph.add_output(conv_1x1(graph, features, "output_bbox", 4 * classes, seed, kBoxOutput));
  graph.remove_dead();
  return std::move(graph);
}

Grid grid_of(const Signature& network) {
  const auto refuse = [](const auto&... what) {
    fail_usage(
        "the network is no DetectNet_v2: ", what...,
        "; it has the outputs coverage [batch, classes, rows, columns] and boxes [batch, 4 * classes, rows, columns]");
  };
  if (network.outputs.size() != 2) refuse("it has ", network.outputs.size(), " outputs");
  const data::NetworkInput input = image_input(network);
  const Port *coverage = &network.outputs[0], *boxes = &network.outputs[1];
  for (const Port* output : {coverage, boxes})
    if (!output->type.shape || output->type.shape->size() != 4)
      refuse("output '", output->name, "' is ", ir::type_string(output->type));
  const ir::Shape &c = *coverage->type.shape, &b = *boxes->type.shape;
  if (b[1] != 4 * c[1] || b[2] != c[2] || b[3] != c[3])
    refuse("output '", boxes->name, "' is ", ir::type_string(boxes->type), " beside ", ir::type_string(coverage->type),
           " of '", coverage->name, "'");
  if (input.height <= 0 || input.width <= 0 || c[1] <= 0 || c[2] <= 0 || c[3] <= 0)
    refuse("the sizes of input '", input.name, "' or of its outputs are free");
  const int64_t stride = input.height / c[2];
  if (stride < 1 || stride * c[2] != input.height || stride * c[3] != input.width)
    refuse("its grid of ", c[2], " x ", c[3], " cells does not divide the input of ", input.height, " x ", input.width,
           " pixels");
  return {.classes = static_cast<int>(c[1]),
          .rows = static_cast<int>(c[2]),
          .columns = static_cast<int>(c[3]),
          .stride = static_cast<int>(stride)};
}

}  // namespace octet::tasks::detectnet_v2
