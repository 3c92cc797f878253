#include "engine/api_context.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/api_common.h"
#include "engine/typed_tensor.h"

namespace octet {

Context::Impl::Impl(std::shared_ptr<const engine::PreparedPlan> plan, const engine::ExecutorOptions& options)
    : executor(std::move(plan), options),
      inputs(executor.plan().inputs.size()),
      outputs(executor.plan().outputs.size()),
      is_image(inputs.size(), 0),
      converted_inputs(inputs.size()),
      converted_outputs(outputs.size()) {
  if (!this->plan().program) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto elements = this->plan().buffers[this->plan().outputs[i]].elements();
    outputs[i] = between.emplace_back(static_cast<size_t>(elements)).data();
  }
}

void Context::Impl::require_own_outputs() const {
  if (plan().program)
    throw Error("the sizes of the outputs come up in a run: bind inputs only, run(), and read result(index)");
}

void Context::Impl::check_index(int index, size_t count, const char* what) const {
  if (index < 0 || static_cast<size_t>(index) >= count)
    throw Error(str("there is no ", what, " ", index, "; the engine has ", count));
}

void Context::Impl::bind_floats(size_t index, const float* data) {
  if (is_image[index]) executor.set_image(index, nullptr);
  is_image[index] = 0;
  converted_inputs[index] = {};
  inputs[index] = data;
}

void Context::Impl::bind_output(size_t index, float* data) {
  converted_outputs[index] = {};
  outputs[index] = data;
}

float* Context::Impl::convert(Converted& tensor, const engine::Buffer& buffer, void* data, DataType type,
                              const char* what) {
  if (engine::type_size(type) == 0)
    throw Error(str(what, " '", buffer.name, "' is to have the type ", static_cast<int>(type),
                    ", which this version of the library does not have"));
  if (data == nullptr) throw Error(str(what, " '", buffer.name, "' has no memory: the pointer is null"));
  tensor = {data, type, std::vector<float>(static_cast<size_t>(buffer.elements()))};
  return tensor.floats.data();
}

void Context::Impl::run() {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!is_image[i] && inputs[i] == nullptr)
      throw Error(str("input ", i, " ('", plan().buffers[plan().inputs[i]].name, "') is not bound"));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] == nullptr)
      throw Error(str("output ", i, " ('", plan().buffers[plan().outputs[i]].name, "') is not bound"));
  for (Converted& each : converted_inputs)
    if (each.data) engine::to_floats(each.data, each.type, each.floats);
  has_run = false;
  translated([&] { executor.run(inputs.data(), outputs.data()); });
  has_run = true;
  for (Converted& each : converted_outputs)
    if (each.data) engine::from_floats(each.floats, each.data, each.type);
}

Context::Context(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

void Context::run(const std::vector<const float*>& inputs, const std::vector<float*>& outputs) {
  check_count(inputs.size(), impl_->inputs.size(), "inputs");
  if (!outputs.empty() || !impl_->plan().program) {
    impl_->require_own_outputs();
    check_count(outputs.size(), impl_->outputs.size(), "outputs");
  }
  for (size_t i = 0; i < inputs.size(); ++i) impl_->bind_floats(i, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) impl_->bind_output(i, outputs[i]);
  impl_->run();
}

void Context::run(const std::vector<float>& input, std::vector<float>& output) {
  const engine::Plan& plan = impl_->plan();
  impl_->require_own_outputs();
  check_count(1, plan.inputs.size(), "input");
  check_count(1, plan.outputs.size(), "output");
  const auto in = static_cast<size_t>(plan.buffers[plan.inputs[0]].elements());
  const auto out = static_cast<size_t>(plan.buffers[plan.outputs[0]].elements());
  if (input.size() != in) throw Error(str("the input has ", input.size(), " elements; the engine expects ", in));
  output.resize(out);
  impl_->bind_floats(0, input.data());
  impl_->bind_output(0, output.data());
  impl_->run();
}

void Context::bind_input(int index, const float* data) {
  impl_->check_index(index, impl_->inputs.size(), "input");
  impl_->bind_floats(index, data);
}

void Context::bind_output(int index, float* data) {
  impl_->require_own_outputs();
  impl_->check_index(index, impl_->outputs.size(), "output");
  impl_->bind_output(static_cast<size_t>(index), data);
}

void Context::bind_input(int index, const void* data, DataType type) {
  impl_->check_index(index, impl_->inputs.size(), "input");
  if (type == DataType::kFloat32) return bind_input(index, static_cast<const float*>(data));
  const auto at = static_cast<size_t>(index);
  Impl::Converted tensor;
  // Read alone; one table has inputs and outputs.
  const float* floats =
      Impl::convert(tensor, impl_->plan().buffers[impl_->plan().inputs[at]], const_cast<void*>(data), type, "input");
  impl_->bind_floats(at, floats);
  impl_->converted_inputs[at] = std::move(tensor);
}

void Context::bind_output(int index, void* data, DataType type) {
  impl_->require_own_outputs();
  impl_->check_index(index, impl_->outputs.size(), "output");
  if (type == DataType::kFloat32) return bind_output(index, static_cast<float*>(data));
  const auto at = static_cast<size_t>(index);
  Impl::Converted tensor;
  float* floats = Impl::convert(tensor, impl_->plan().buffers[impl_->plan().outputs[at]], data, type, "output");
  impl_->bind_output(at, floats);
  impl_->converted_outputs[at] = std::move(tensor);
}

void Context::bind_image(int index, const uint8_t* pixels, const ImageFormat& format) {
  impl_->check_index(index, impl_->inputs.size(), "input");
  if (pixels == nullptr) throw Error(str("input ", index, " has no pixels: the pointer is null"));
  engine::ImageFormat f{
      .pixel_stride = format.pixel_stride, .row_stride = format.row_stride, .image_stride = format.image_stride};
  std::copy(std::begin(format.channel), std::end(format.channel), f.channel);
  std::copy(std::begin(format.scale), std::end(format.scale), f.scale);
  std::copy(std::begin(format.offset), std::end(format.offset), f.offset);
  translated([&] {
    impl_->executor.set_image(
        index, std::make_unique<engine::ImageInput>(impl_->plan(), impl_->plan().inputs[index], pixels, f));
  });
  impl_->is_image[index] = 1;
}

void Context::run() {
  impl_->run();
}

TensorView Context::result(int index) const {
  if (!impl_->has_run) throw Error("there are no results before a run");
  if (!impl_->plan().program) {
    impl_->check_index(index, impl_->outputs.size(), "output");
    const engine::Buffer& buffer = impl_->plan().buffers[impl_->plan().outputs[index]];
    return {DataType::kFloat32, buffer.shape, impl_->outputs[index]};
  }
  const std::vector<dense::Tensor>& results = impl_->executor.results();
  impl_->check_index(index, results.size(), "output");
  const dense::Tensor& result = results[static_cast<size_t>(index)];
  return {public_type(result.type()), result.shape(), result.bytes().data()};
}

int Context::threads() const {
  return impl_->executor.threads();
}

const char* Context::isa() const {
  return isa_name(impl_->executor.isa());
}

std::vector<LayerReport> Context::profile(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
                                          int runs) {
  run(inputs, outputs);
  return profile(runs);
}

std::vector<LayerReport> Context::profile(int runs) {
  if (runs < 1) throw Error(str("profile needs at least one run, not ", runs));
  engine::Executor& executor = impl_->executor;
  executor.clear_profile();
  executor.set_profiling(true);
  for (int i = 0; i < runs; ++i) run();
  executor.set_profiling(false);
  std::vector<LayerReport> out = layer_reports(executor.plan(), executor.isa());
  const std::vector<int64_t>& times = executor.step_nanoseconds();
  for (size_t i = 0; i < times.size(); ++i) out[i].microseconds = static_cast<double>(times[i]) / runs / 1000;
  return out;
}

}  // namespace octet
