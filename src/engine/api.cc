// The installed C++ interface over plan, file and executor.
#include <octet/engine.h>

#include <algorithm>

#include "base/error.h"
#include "engine/engine_file.h"
#include "engine/executor.h"

namespace octet {
namespace {

// The public interface has an error type of its own, so that its header needs nothing else of Octet.
template <typename Work>
auto translated(Work work) {
  try {
    return work();
  } catch (const UserError& e) {
    throw Error(e.what());
  }
}

std::vector<TensorInfo> infos(const engine::Plan& plan, const std::vector<int>& ids) {
  std::vector<TensorInfo> out;
  for (int id : ids) out.push_back({plan.buffers[id].name, plan.buffers[id].shape});
  return out;
}

Isa chosen_isa(const std::string& name) {
  return name.empty() ? default_isa() : parse_isa(name);
}

std::vector<LayerReport> reports(const engine::Plan& plan, Isa isa) {
  std::vector<LayerReport> out;
  for (engine::LayerInfo& l : engine::layer_list(plan, isa))
    out.push_back(
        {std::move(l.name), std::move(l.op), std::move(l.precision), std::move(l.kernel), std::move(l.reason)});
  return out;
}

void check_count(size_t given, size_t expected, const char* what) {
  if (given != expected) throw Error(str("run was given ", given, " ", what, "; the engine has ", expected));
}

}  // namespace

int64_t TensorInfo::size() const {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

Context::Context(std::unique_ptr<engine::Executor> executor) : executor_(std::move(executor)) {}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

void Context::run(const std::vector<const float*>& inputs, const std::vector<float*>& outputs) {
  check_count(inputs.size(), executor_->plan().inputs.size(), "inputs");
  check_count(outputs.size(), executor_->plan().outputs.size(), "outputs");
  executor_->run(inputs.data(), outputs.data());
}

void Context::run(const std::vector<float>& input, std::vector<float>& output) {
  const engine::Plan& plan = executor_->plan();
  check_count(1, plan.inputs.size(), "input");
  check_count(1, plan.outputs.size(), "output");
  const auto in = static_cast<size_t>(plan.buffers[plan.inputs[0]].elements());
  const auto out = static_cast<size_t>(plan.buffers[plan.outputs[0]].elements());
  if (input.size() != in) throw Error(str("the input has ", input.size(), " elements; the engine expects ", in));
  output.resize(out);
  const float* inputs[] = {input.data()};
  float* outputs[] = {output.data()};
  executor_->run(inputs, outputs);
}

int Context::threads() const {
  return executor_->threads();
}

std::vector<LayerReport> Context::profile(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
                                          int runs) {
  if (runs < 1) throw Error(str("profile needs at least one run, not ", runs));
  executor_->clear_profile();
  executor_->set_profiling(true);
  for (int i = 0; i < runs; ++i) run(inputs, outputs);
  executor_->set_profiling(false);
  std::vector<LayerReport> out = reports(executor_->plan(), executor_->isa());
  const std::vector<int64_t>& times = executor_->step_nanoseconds();
  for (size_t i = 0; i < out.size(); ++i) out[i].microseconds = static_cast<double>(times[i]) / runs / 1000;
  return out;
}

Engine::Engine(std::shared_ptr<const engine::Plan> plan)
    : plan_(std::move(plan)), inputs_(infos(*plan_, plan_->inputs)), outputs_(infos(*plan_, plan_->outputs)) {}

Engine Engine::load(const std::string& path) {
  return translated([&] { return Engine(engine::load_engine(path)); });
}

Context Engine::create_context(const ContextOptions& options) const {
  return translated([&] {
    return Context(std::make_unique<engine::Executor>(
        plan_, engine::ExecutorOptions{.threads = options.threads, .isa = chosen_isa(options.isa)}));
  });
}

std::vector<LayerReport> Engine::layers(const std::string& isa) const {
  return translated([&] { return reports(*plan_, chosen_isa(isa)); });
}

}  // namespace octet
