#include "tasks/image_graph.h"

#include "ir/infer.h"
#include "passes/free_batch.h"

namespace octet::tasks {

ir::Graph image_graph(const ir::Graph& graph) {
  ir::Graph out = graph.clone();
  const data::NetworkInput input = image_input(out);
  if (!input.single) passes::free_batch(out);
  if (!input.nhwc || out.nodes().empty()) return out;
  ir::Value* last = out.inputs()[0];
  const ir::Shape& shape = *last->type.shape;
  ir::Value* first =
      out.add_input(out.unique_name(last->name + "/channels_first"),
                    {ir::DataType::kFloat32, input.single ? ir::Shape{shape[2], shape[0], shape[1]}
                                                          : ir::Shape{shape[0], shape[3], shape[1], shape[2]}});
  const std::string name = last->name;
  ir::Value* turned =
      out.add(ir::OpKind::kTranspose, out.unique_name(name + "/channels_last"), {first},
              {{"perm", input.single ? std::vector<int64_t>{1, 2, 0} : std::vector<int64_t>{0, 2, 3, 1}}},
              out.nodes().front().get());
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
