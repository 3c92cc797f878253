// The installed C++ interface over plan, file and executor.
#include <octet/engine.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "dense/program.h"
#include "engine/engine_file.h"
#include "engine/executor.h"
#include "engine/model_info.h"
#include "engine/profiles.h"
#include "engine/throughput.h"
#include "engine/typed_tensor.h"

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
  for (int id : ids) out.push_back({plan.buffers[id].name, plan.buffers[id].shape, DataType::kFloat32});
  return out;
}

DataType public_type(dense::Type type) {
  switch (type) {
    case dense::Type::kFloat:
      return DataType::kFloat32;
    case dense::Type::kInt32:
      return DataType::kInt32;
    case dense::Type::kInt64:
      return DataType::kInt64;
    case dense::Type::kBool:
    case dense::Type::kInt8:  // codes are no outputs
    case dense::Type::kUint8:
      break;
  }
  return DataType::kBool;
}

std::vector<TensorInfo> output_infos(const engine::Plan& plan) {
  if (!plan.program) return infos(plan, plan.outputs);
  std::vector<TensorInfo> out;
  for (const dense::Output& output : plan.program->outputs)
    out.push_back({plan.program->values[static_cast<size_t>(output.value)], output.shape, public_type(output.type)});
  return out;
}

// May be one that this CPU lacks: layers can be listed for it.
Isa listed_isa(const std::string& name) {
  return name.empty() ? default_isa() : parse_isa(name);
}

std::vector<LayerReport> reports(const engine::Plan& plan, Isa isa) {
  std::vector<LayerReport> out;
  for (engine::LayerInfo& l : engine::layer_list(plan, isa))
    out.push_back(
        {std::move(l.name), std::move(l.op), std::move(l.precision), std::move(l.kernel), std::move(l.reason)});
  return out;
}

void check_profile(int profile, int count) {
  if (profile < 0 || profile >= count) throw Error(str("there is no profile ", profile, "; the engine has ", count));
}

void check_count(size_t given, size_t expected, const char* what) {
  if (given != expected) throw Error(str("run was given ", given, " ", what, "; the engine has ", expected));
}

template <typename Pointer>
void check_pointers(const Pointer* pointers, const engine::Plan& plan, const std::vector<int>& ids, const char* what) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (pointers[i] == nullptr)
      throw Error(str(what, " ", i, " ('", plan.buffers[ids[i]].name, "') has no memory: the pointer is null"));
}

}  // namespace

int64_t TensorInfo::size() const {
  int64_t count = 1;
  for (int64_t d : shape) {
    if (d < 0) return -1;
    count *= d;
  }
  return count;
}

int64_t TensorView::size() const {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

// Prepared plans by profile and instruction set, made when the first context asks.
struct Engine::Shared {
  std::shared_ptr<const engine::Plan> plan;
  std::mutex mutex;
  std::map<std::pair<int, Isa>, std::shared_ptr<const engine::PreparedPlan>> prepared;

  std::shared_ptr<const engine::PreparedPlan> prepared_for(const std::string& isa_name, int profile) {
    const Isa isa = listed_isa(isa_name);
    auto chosen = engine::profile_of(plan, profile);
    const std::lock_guard lock(mutex);
    auto& found = prepared[{profile, isa}];
    if (!found) found = std::make_shared<const engine::PreparedPlan>(std::move(chosen), isa);
    return found;
  }
};

struct Context::Impl {
  // A tensor of the caller in another type, and the floats that the engine has in its place.
  struct Converted {
    void* data = nullptr;  // nullptr: the caller's floats are used in place
    DataType type = DataType::kFloat32;
    std::vector<float> floats;
  };
  engine::Executor executor;
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  std::vector<char> is_image;
  std::vector<Converted> converted_inputs, converted_outputs;
  std::vector<std::vector<float>> between;  // what a program behind the plan reads
  bool has_run = false;

  Impl(std::shared_ptr<const engine::PreparedPlan> plan, const engine::ExecutorOptions& options)
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
  const engine::Plan& plan() const { return executor.plan(); }
  void require_own_outputs() const {
    if (plan().program)
      throw Error("the sizes of the outputs come up in a run: bind inputs only, run(), and read result(index)");
  }
  void check_index(int index, size_t count, const char* what) const {
    if (index < 0 || static_cast<size_t>(index) >= count)
      throw Error(str("there is no ", what, " ", index, "; the engine has ", count));
  }
  void bind_floats(size_t index, const float* data) {
    if (is_image[index]) executor.set_image(index, nullptr);
    is_image[index] = 0;
    converted_inputs[index] = {};
    inputs[index] = data;
  }
  void bind_output(size_t index, float* data) {
    converted_outputs[index] = {};
    outputs[index] = data;
  }
  // Memory of another type; returns the floats in its place.
  static float* convert(Converted& tensor, const engine::Buffer& buffer, void* data, DataType type, const char* what) {
    if (engine::type_size(type) == 0)
      throw Error(str(what, " '", buffer.name, "' is to have the type ", static_cast<int>(type),
                      ", which this version of the library does not have"));
    if (data == nullptr) throw Error(str(what, " '", buffer.name, "' has no memory: the pointer is null"));
    tensor = {data, type, std::vector<float>(static_cast<size_t>(buffer.elements()))};
    return tensor.floats.data();
  }
  void run() {
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
};

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
  std::vector<LayerReport> out = reports(executor.plan(), executor.isa());
  const std::vector<int64_t>& times = executor.step_nanoseconds();
  for (size_t i = 0; i < times.size(); ++i) out[i].microseconds = static_cast<double>(times[i]) / runs / 1000;
  return out;
}

struct Throughput::Impl {
  engine::ThroughputPool pool;
};

Throughput::Throughput(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Throughput::~Throughput() = default;
Throughput::Throughput(Throughput&&) noexcept = default;
Throughput& Throughput::operator=(Throughput&&) noexcept = default;

Throughput::Ticket Throughput::submit(const std::vector<const float*>& inputs, const std::vector<float*>& outputs) {
  return submit(inputs, outputs, Completion());
}

Throughput::Ticket Throughput::submit(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
                                      Completion done) {
  const engine::Plan& plan = impl_->pool.plan().plan();
  check_count(inputs.size(), plan.inputs.size(), "inputs");
  check_count(outputs.size(), plan.outputs.size(), "outputs");
  Ticket ticket = 0;
  submit(inputs.data(), outputs.data(), &ticket, /*wait=*/true, std::move(done));
  return ticket;
}

bool Throughput::submit(const float* const* inputs, float* const* outputs, Ticket* ticket, bool wait) {
  return submit(inputs, outputs, ticket, wait, {});
}

bool Throughput::submit(const float* const* inputs, float* const* outputs, Ticket* ticket, bool wait, Completion done) {
  const engine::Plan& plan = impl_->pool.plan().plan();
  check_pointers(inputs, plan, plan.inputs, "input");
  check_pointers(outputs, plan, plan.outputs, "output");
  const Ticket given = impl_->pool.submit(inputs, outputs, wait, std::move(done));
  if (given != 0 && ticket != nullptr) *ticket = given;
  return given != 0;
}

void Throughput::wait(Ticket ticket) {
  translated([&] { impl_->pool.wait(ticket); });
}

void Throughput::wait_all() {
  impl_->pool.wait_all();
}

int Throughput::workers() const {
  return impl_->pool.workers();
}

const char* Throughput::isa() const {
  return isa_name(impl_->pool.plan().isa());
}

Engine::Engine(std::shared_ptr<const engine::Plan> plan) : shared_(std::make_shared<Shared>()) {
  for (int i = 0; i <= static_cast<int>(plan->profiles.size()); ++i) {
    const auto profile = engine::profile_of(plan, i);
    inputs_.push_back(infos(*profile, profile->inputs)), outputs_.push_back(output_infos(*profile));
  }
  shared_->plan = std::move(plan);
}

const std::vector<TensorInfo>& Engine::inputs(int profile) const {
  check_profile(profile, profiles());
  return inputs_[static_cast<size_t>(profile)];
}

const std::vector<TensorInfo>& Engine::outputs(int profile) const {
  check_profile(profile, profiles());
  return outputs_[static_cast<size_t>(profile)];
}

int Engine::find_profile(const std::vector<int64_t>& shape) const {
  for (int i = 0; i < profiles(); ++i)
    if (!inputs(i).empty() && inputs(i)[0].shape == shape) return i;
  std::string wanted;
  for (size_t i = 0; i < shape.size(); ++i) wanted += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  throw Error(
      str("the engine has no profile for the input ", wanted, "; it has ", engine::profile_list(*shared_->plan)));
}

Engine Engine::load(const std::string& path) {
  return translated([&] { return Engine(engine::load_engine(path)); });
}

Engine Engine::from_memory(const void* bytes, size_t size, const std::string& name) {
  return translated([&] { return Engine(engine::parse_engine({static_cast<const std::byte*>(bytes), size}, name)); });
}

Context Engine::create_context(const ContextOptions& options) const {
  return translated([&] {
    engine::TeamOptions team{.cpus = options.cpus,
                             .pool = {.run = options.pool.run, .context = options.pool.user},
                             .idle_spin_ns = options.idle_spin_us < 0 ? -1 : options.idle_spin_us * 1000};
    return Context(
        std::make_unique<Context::Impl>(shared_->prepared_for(options.isa, options.profile),
                                        engine::ExecutorOptions{.threads = options.threads, .team = std::move(team)}));
  });
}

bool Engine::finds_sizes() const {
  return shared_->plan->program != nullptr;
}

Throughput Engine::create_throughput(const ThroughputOptions& options) const {
  if (finds_sizes())
    throw Error("the sizes of the outputs come up in a run, which contexts alone can give: make one for each thread");
  return translated([&] {
    return Throughput(std::unique_ptr<Throughput::Impl>(
        new Throughput::Impl{{shared_->prepared_for(options.isa, options.profile),
                              {.workers = options.workers, .cpus = options.cpus, .queue = options.queue}}}));
  });
}

const std::map<std::string, std::string>& Engine::metadata() const {
  return shared_->plan->metadata;
}

ModelInfo Engine::model_info() const {
  return translated([&] { return engine::read_model_info(metadata()); });
}

ImageFormat Engine::image_format(int input) const {
  if (input < 0 || static_cast<size_t>(input) >= inputs().size())
    throw Error(str("there is no input ", input, "; the engine has ", inputs().size()));
  const TensorInfo& info = inputs()[static_cast<size_t>(input)];
  if (info.shape.size() != 4) throw Error(str("input ", input, " ('", info.name, "') is no image of rank 4"));
  return translated([&] {
    const ModelInfo model = engine::read_model_info(metadata());
    return engine::image_format(model, info.shape[model.layout == "NHWC" ? 3 : 1]);
  });
}

std::vector<LayerReport> Engine::layers(const std::string& isa, int profile) const {
  return translated([&] { return reports(*engine::profile_of(shared_->plan, profile), listed_isa(isa)); });
}

}  // namespace octet
