#include "train/executor.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "train/constants.h"
#include "train/executor_state.h"
#include "train/fake_quant.h"
#include "train/ops_fused.h"
#include "train/placed_threads.h"
#include "train/torch_runtime.h"

namespace octet::train {

void Executor::State::add_named(const ir::Value* value, bool parameter, Held held) {
  const int slot = slots.of(value);
  for (auto& [s, tensor] : constants)
    if (s == slot) {
      if (tensor.is_leaf() && !tensor.requires_grad()) tensor = tensor.to(held_type(options, held));
      if (parameter && !tensor.requires_grad()) tensor.set_requires_grad(true);
      auto& list = parameter ? parameters : buffers;
      const bool known = std::any_of(list.begin(), list.end(), [&](const auto& p) { return p.first == value->name; });
      if (!known) list.emplace_back(value->name, tensor);
    }
}

// It has the name and the slot of the zero point.
void Executor::State::add_offset(const ir::Node& quantizer) {
  const int scale = slots.of(quantizer.input(1)), zero_point = slots.of(quantizer.input(2));
  const auto constant = [&](int slot) -> at::Tensor& {
    return std::find_if(constants.begin(), constants.end(), [&](const auto& c) { return c.first == slot; })->second;
  };
  constant(zero_point) = offset_of(constant(zero_point), constant(scale).detach());
  add_named(quantizer.input(2), true, Held::kScale);
}

void Executor::State::make_constants() {
  const at::ScalarType master = master_type(options.precision);
  for (const ir::Value* value : graph.constants()) {
    at::Tensor t = to_torch(*value->constant);
    if (at::isFloatingType(t.scalar_type())) t = t.to(master);
    if (options.channels_last && t.dim() == 4) t = t.contiguous(at::MemoryFormat::ChannelsLast);
    constants.emplace_back(slots.of(value), t.to(device));
  }
  std::set<const ir::Value*> seen;
  for (const auto& node : graph.nodes())
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const ir::Value* value = node->inputs[i];
      if (!value || !value->is_constant()) continue;
      const bool statistics = node->kind == ir::OpKind::kBatchNormalization && i >= 3;
      const bool scale = node->kind == ir::OpKind::kFakeQuantize && i == 1;
      const std::string state = scale ? node->get_string("state") : "";
      const bool learned = state == ir::kLearned || state == ir::kLearnedOffset || state == ir::kLearnedClip;
      if (!seen.insert(value).second) continue;
      if (node->kind == ir::OpKind::kFakeQuantize && i == 2 && node->get_string("state") == ir::kLearnedOffset)
        add_offset(*node);
      const bool normalizes = node->kind == ir::OpKind::kBatchNormalization;
      const Held held = scale ? Held::kScale : normalizes ? Held::kNormalization : Held::kWeight;
      if (learned || (value->trainable && !statistics && !scale)) {
        add_named(value, true, held);
      } else if (statistics || scale) {
        add_named(value, false, held);
      }
    }
}

Executor::Executor(const ir::Graph& graph, ExecutorOptions options) {
  OCTET_CHECK(options.precision != Precision::kAuto);
  initialize_torch();
  require_device(options.device);
  state_ = std::make_unique<State>(graph, std::move(options));
  State& s = *state_;
  s.device = at::Device(s.options.device);
  s.make_constants();
  s.node_steps = compile_nodes(s.graph, s.slots);
  s.compile_chains();
  if (s.has_integer_sums()) s.keep_codes_of_constants();
}

bool Executor::State::has_integer_sums() const {
  return options.integer_sums && options.precision == Precision::kFloat32 && device.is_cpu();
}

// They are the same in every run.
void Executor::State::keep_codes_of_constants() {
  const at::NoGradGuard no_grad;
  const auto is_kept = [&](const Step& step) {
    return step.node->kind == ir::OpKind::kFakeQuantize && step.node->input(0)->is_constant() &&
           !graph.is_output(step.node->output());
  };
  Run run = new_run(false);
  for (const Step& step : node_steps)
    if (is_kept(step)) {
      step.run(run);
      const int slot = slots.of(step.node->output());
      constant_codes.emplace_back(slot, run.slots[slot]);
    }
  std::erase_if(node_steps, is_kept);
  std::erase_if(fused_steps, is_kept);
}

void Executor::State::compile_chains() {
  const bool cast = options.cast_model && is_low(compute_type(options.precision));  // chains have float32 parameters
  if (options.channels_last && !cast && has_pointwise(device, compute_type(options.precision)))
    fused_steps = compile_fused(graph, slots, hooks.values());
}

Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;

void Executor::State::check_shape(const ir::Value& value, const at::Tensor& t) const {
  if (!value.type.shape) return;
  const ir::Shape& expected = *value.type.shape;
  bool fits = static_cast<int64_t>(expected.size()) == t.dim();
  // Any batch size will do, whatever the graph says.
  for (int64_t i = 1; fits && i < t.dim(); ++i) fits = expected[i] == ir::kDynamic || expected[i] == t.size(i);
  require(fits, "input '", value.name, "' of graph '", graph.name, "' has shape ", ir::shape_string(t.sizes().vec()),
          ", expected ", ir::shape_string(expected));
}

at::Tensor Executor::State::input_tensor(const ir::Value& value, const at::Tensor& given) const {
  check_shape(value, given);
  if (!at::isFloatingType(given.scalar_type())) return given.to(device);
  const at::Tensor t = given.to(device, master_type(options.precision));
  if (!options.channels_last || t.dim() != 4) return t;
  // One channel is NHWC and NCHW at once; only these strides make LibTorch's convolution choose NHWC for its output.
  if (t.size(1) == 1) return t.contiguous().as_strided(t.sizes(), {t.size(2) * t.size(3), 1, t.size(3), 1});
  return t.contiguous(at::MemoryFormat::ChannelsLast);
}

Run Executor::State::new_run(bool training) {
  Run run;
  run.training = training;
  run.batch_norm_frozen = batch_norm_frozen;
  run.statistics = options.statistics;
  run.channels_last = options.channels_last;
  run.compute = compute_type(options.precision);
  run.master = master_type(options.precision);
  run.cast_model = options.cast_model;
  run.integer_sums = !training && has_integer_sums();
  run.codes = run.integer_sums || flows_as_codes(run.compute, run.cast_model);
  run.device = device;
  run.seed = options.seed;
  run.step = step;
  run.activation_constant = static_cast<float>(options.averaging.activations);
  run.weight_constant = static_cast<float>(options.averaging.weights);
  run.slots.resize(slots.values().size());
  for (const auto& [slot, tensor] : constants) run.slots[slot].value = tensor;
  if (run.integer_sums)
    for (const auto& [slot, codes] : constant_codes) run.slots[slot] = codes;
  return run;
}

void Executor::State::execute(Run& run, const std::vector<Step>& steps) {
  for (const ir::Value* value : graph.inputs()) hooks.visit(run, slots.of(value));
  for (const Step& step : steps) {
    try {
      step.run(run);
    } catch (const c10::Error& error) {
      fail(node_text(*step.node), " failed: ", error.what_without_backtrace());
    }
    for (const int slot : step.outputs) hooks.visit(run, slot);
    for (const int slot : step.free) run.slots[slot] = {};
  }
}

std::vector<at::Tensor> Executor::forward(std::vector<at::Tensor> inputs, Mode mode) {
  State& s = *state_;
  // Does nothing within what has placed them for longer, as the steps of a training.
  const PlacedThreads placed(s.device.is_cpu());
  const auto& expected = s.graph.inputs();
  require(inputs.size() == expected.size(), "graph '", s.graph.name, "' takes ", expected.size(), " inputs, not ",
          inputs.size());
  const bool training = mode == Mode::kTrain;
  const at::AutoGradMode grad(training);
  if (training) {
    s.scales_stale = true;
  } else {
    s.refresh_weight_scales();
  }
  Run run = s.new_run(training);
  run.may_overwrite = !training && s.hooks.empty();
  for (size_t i = 0; i < inputs.size(); ++i) run.set(s.slots.of(expected[i]), s.input_tensor(*expected[i], inputs[i]));
  inputs.clear();
  // float32 evaluation is the reference, and what is observed in evaluation are its nodes: one at a time.
  const bool fused =
      !s.fused_steps.empty() && (training || ((is_low(run.compute) || run.integer_sums) && !s.hooks.has_tap()));
  s.execute(run, fused ? s.fused_steps : s.node_steps);
  if (training) ++s.step;
  std::vector<at::Tensor> outputs;
  for (const ir::Value* value : s.graph.outputs()) outputs.push_back(run.precise(s.slots.of(value)));
  return outputs;
}

std::vector<Executor::NodeTypes> Executor::node_types(int64_t batch) {
  State& s = *state_;
  const at::NoGradGuard no_grad;
  Run run = s.new_run(false);
  for (const ir::Value* input : s.graph.inputs()) {
    require(input->type.shape.has_value(), "input '", input->name, "' of graph '", s.graph.name, "' has no shape");
    std::vector<int64_t> shape(*input->type.shape);
    for (int64_t& extent : shape) extent = extent == ir::kDynamic ? batch : extent;
    const at::Tensor zeros = at::zeros(shape, scalar_type_of(input->type.data_type));
    run.set(s.slots.of(input), s.input_tensor(*input, zeros));
  }
  std::vector<NodeTypes> out;
  for (const Step& step : s.node_steps) {
    step.run(run);
    NodeTypes types{.name = step.node->name, .op = step.node->info().name};
    for (const int slot : step.outputs)
      if (types.output.empty() && run.slots[slot].value.defined())
        types.output = run.slots[slot].is_codes() ? "codes" : type_name(run.slots[slot].value.scalar_type());
    // As they are kept; what a pass computes with is cast from that.
    for (const auto& [name, parameter] : s.parameters)
      if (types.parameters.empty() &&
          std::any_of(step.node->inputs.begin(), step.node->inputs.end(),
                      [&, kept = &name](auto* input) { return input && input->name == *kept; }))
        types.parameters = type_name(parameter.scalar_type());
    out.push_back(types);
    for (const int slot : step.free) run.slots[slot] = {};
  }
  return out;
}

void Executor::set_tap(Tap tap, const std::vector<std::string>& names) {
  state_->hooks.set_tap(std::move(tap), names);
  state_->compile_chains();
}

void Executor::set_override(const std::string& value, Override replace) {
  state_->hooks.set_override(value, std::move(replace));
  state_->compile_chains();
}

void Executor::set_batch_norm_frozen(bool frozen) {
  state_->batch_norm_frozen = frozen;
}

void Executor::set_averaging_constants(float activations, float weights) {
  const auto check = [](const char* what, float c) {
    require(c >= 0 && c <= 1, "averaging constant of ", what, " is ", c, ", expected 0 to 1");
  };
  check("activations", activations);
  check("weights", weights);
  state_->options.averaging = {.activations = activations, .weights = weights};
}

void Executor::set_step(int64_t step) {
  state_->step = step;
}
int64_t Executor::step() const {
  return state_->step;
}
const ExecutorOptions& Executor::options() const {
  return state_->options;
}
const ir::Graph& Executor::graph() const {
  return state_->graph;
}

}  // namespace octet::train
