#include "tasks/image_graph.h"

#include "ir/infer.h"
#include "passes/free_batch.h"

namespace octet::tasks {

ir::Graph image_graph(const ir::Graph& graph) {
  ir::Graph out = graph.clone();
  passes::free_batch(out);
  if (!image_input(out).nhwc || out.nodes().empty()) return out;
  ir::Value* last = out.inputs()[0];
  const ir::Shape& shape = *last->type.shape;
  ir::Value* first = out.add_input(out.unique_name(last->name + "/channels_first"),
                                   {ir::DataType::kFloat32, ir::Shape{shape[0], shape[3], shape[1], shape[2]}});
  const std::string name = last->name;
  ir::Value* turned = out.add(ir::OpKind::kTranspose, out.unique_name(name + "/channels_last"), {first},
                              {{"perm", std::vector<int64_t>{0, 2, 3, 1}}}, out.nodes().front().get());
  out.replace_uses(last, turned);
  out.erase_input(last);
  out.rename(turned, name);
  return out;
}

int64_t images_at_a_time(const ir::Graph& graph) {
  const ir::Graph fed = image_graph(graph);
  return image_input(fed).batch;
}

}  // namespace octet::tasks
