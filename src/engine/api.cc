// The installed C++ interface over plan, file and executor.
#include <octet/engine.h>

#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "engine/api_common.h"
#include "engine/api_context.h"
#include "engine/engine_file.h"
#include "engine/model_info.h"
#include "engine/profiles.h"

namespace octet {
namespace {

std::vector<TensorInfo> infos(const engine::Plan& plan, const std::vector<int>& ids) {
  std::vector<TensorInfo> out;
  for (int id : ids) out.push_back({plan.buffers[id].name, plan.buffers[id].shape, DataType::kFloat32});
  return out;
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

void check_profile(int profile, int count) {
  if (profile < 0 || profile >= count) throw Error(str("there is no profile ", profile, "; the engine has ", count));
}

}  // namespace

void check_count(size_t given, size_t expected, const char* what) {
  if (given != expected) throw Error(str("run was given ", given, " ", what, "; the engine has ", expected));
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

std::vector<LayerReport> layer_reports(const engine::Plan& plan, Isa isa) {
  std::vector<LayerReport> out;
  for (engine::LayerInfo& l : engine::layer_list(plan, isa))
    out.push_back(
        {std::move(l.name), std::move(l.op), std::move(l.precision), std::move(l.kernel), std::move(l.reason)});
  return out;
}

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
  return translated([&] { return layer_reports(*engine::profile_of(shared_->plan, profile), listed_isa(isa)); });
}

}  // namespace octet
