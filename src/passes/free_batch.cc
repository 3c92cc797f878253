#include "passes/free_batch.h"

#include "base/error.h"
#include "ir/infer.h"
#include "passes/batch_axes.h"

namespace octet::passes {
namespace {

constexpr int64_t kPrime = 10'007;

}  // namespace

bool free_batch(ir::Graph& graph) {
  if (graph.inputs().size() != 1 || !graph.inputs()[0]->type.shape || graph.inputs()[0]->type.shape->empty())
    return false;
  const int64_t batch = graph.inputs()[0]->type.shape->front();
  if (batch == ir::kDynamic) return true;
  if (graph.program) return false;  // it was made for these sizes
  ir::Graph freed = graph.clone();
  try {
    if (!follow_batch(freed, kPrime)) return false;
    ir::set_batch(freed, ir::kDynamic);
  } catch (const UserError&) {
    return false;  // no shape fits another batch
  }
  graph = std::move(freed);
  return true;
}

void require_batch(ir::Graph& graph, int64_t batch) {
  if (graph.inputs().size() != 1) return;
  const ir::Value* input = graph.inputs()[0];
  if (!input->type.shape || input->type.shape->empty()) return;
  const int64_t own = input->type.shape->front();
  if (own != ir::kDynamic && own != batch && !free_batch(graph))
    fail_usage("input '", input->name, "' is ", ir::type_string(input->type),
               ", and the network does not treat the images of another batch each by itself, so it can have the batch ",
               own, " only");
}

}  // namespace octet::passes
