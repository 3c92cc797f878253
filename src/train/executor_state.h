// What an Executor holds. Its units share it: executor.cc builds and runs, executor_parameters.cc exchanges parameters
// with graphs.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "train/executor.h"
#include "train/executor_compile.h"
#include "train/forward_hooks.h"
#include "train/ops_common.h"
#include "train/precision.h"

namespace octet::train {

struct Executor::State {
  State(const ir::Graph& source, ExecutorOptions o)
      : options(std::move(o)), graph(source.clone()), slots(graph), hooks(graph, slots) {}

  void make_constants();
  void add_named(const ir::Value* value, bool parameter, Held held);
  at::Tensor input_tensor(const ir::Value& value, const at::Tensor& given) const;
  Run new_run(bool training);
  void check_shape(const ir::Value& value, const at::Tensor& t) const;
  void compile_chains();
  void execute(Run& run, const std::vector<Step>& steps);
  void refresh_weight_scales();
  bool is_scale(const std::string& name) const;  // of a quantizer
  void add_offset(const ir::Node& quantizer);
  // The quantizer that has the parameter of this name for an offset, in the place of its zero point; or nullptr.
  const ir::Node* quantizer_with_offset(const std::string& name) const;
  const at::Tensor& parameter(const std::string& name) const;
  const ir::Value& matching(const ir::Graph& other, const std::string& name, const at::Tensor& tensor) const;
  bool has_integer_sums() const;
  void keep_codes_of_constants();

  ExecutorOptions options;
  ir::Graph graph;
  SlotMap slots;
  at::Device device = at::kCPU;
  std::vector<std::pair<int, at::Tensor>> constants;  // slot and tensor
  std::vector<std::pair<int, Slot>> constant_codes;   // with integer sums: of quantizers of constants
  std::vector<std::pair<std::string, at::Tensor>> parameters, buffers;
  std::vector<Step> node_steps, fused_steps;  // fused_steps is empty where chains cannot be used
  ForwardHooks hooks;
  bool batch_norm_frozen = false;
  // A training step has changed weights since their scales were computed.
  bool scales_stale = false;
  int64_t step = 0;
};

}  // namespace octet::train
