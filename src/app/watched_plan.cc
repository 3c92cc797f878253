#include "app/watched_plan.h"

#include <map>

#include "app/engine_build.h"
#include "base/cpu_features.h"
#include "passes/place_fake_quant.h"
#include "tasks/image_graph.h"

namespace octet::app {
namespace {

ir::Graph watched_graph(const ir::Graph& graph, const std::vector<std::string>& tensors) {
  ir::Graph out = tasks::image_graph(graph);
  out.program = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ir::Value* value = out.find_value(tensors[i]);
    OCTET_CHECK(value != nullptr, "no tensor '", tensors[i], "' to watch");
    if (i < out.outputs().size())
      out.set_output_value(i, value);
    else
      out.add_output(value);
  }
  for (size_t i = tensors.size(); i < out.outputs().size(); ++i) out.set_output_value(i, out.find_value(tensors[0]));
  return out;
}

engine::Plan compiled(const ir::Graph& graph, const std::vector<int64_t>& shape) {
  try {
    return build_engine(graph, {.input_shape = shape, .isa = default_isa(), .dump_passes = {}, .outputs_stay = true},
                        {.threads = 1});
  } catch (const UserError& e) {
    throw EngineCannotRun(e);
  }
}

// The buffers of the plan that hold these tensors as floats.
std::vector<int> buffers_of(const engine::Plan& plan, const std::vector<std::string>& names) {
  std::map<std::string, int> ids;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const engine::Layout layout = plan.buffers[i].layout;
    if (layout == engine::Layout::kFloatDense || layout == engine::Layout::kFloatNhwc)
      ids.emplace(plan.buffers[i].name, static_cast<int>(i));
  }
  std::vector<int> out;
  for (const std::string& name : names) {
    const auto found = ids.find(name);
    OCTET_CHECK(found != ids.end(), "the engine has no tensor '", name, "'");
    out.push_back(found->second);
  }
  return out;
}

}  // namespace

WatchedPlan watch(const ir::Graph& graph, const std::vector<std::string>& tensors, bool quantized,
                  const std::vector<int64_t>& input_shape) {
  ir::Graph network = watched_graph(graph, tensors);
  if (!quantized) passes::remove_fake_quant(network);
  WatchedPlan out;
  out.plan = std::make_shared<const engine::Plan>(compiled(network, input_shape));
  out.prepared = std::make_shared<const engine::PreparedPlan>(out.plan, default_isa());
  out.buffers = buffers_of(*out.plan, tensors);
  return out;
}

}  // namespace octet::app
