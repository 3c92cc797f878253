// The C interface over the C++ one: handles, statuses and sentences instead of objects and exceptions.
#include <octet/engine.h>
#include <octet/octet.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"

struct octet_engine {
  octet::Engine engine;
  // What octet_engine_model_info() gave out, made by its first call.
  struct Info {
    octet::ModelInfo model;
    std::vector<const char*> classes;
    std::vector<double> mean, std;  // of every channel
  };
  mutable std::mutex mutex;
  mutable std::unique_ptr<const Info> info;
};

struct octet_context {
  octet::Context context;
  std::vector<octet::LayerReport> layers;  // of the last profile
  std::vector<octet::TensorView> results;  // given out since the last run, by index
};

struct octet_throughput {
  octet::Throughput throughput;
};

static_assert(static_cast<int>(octet::DataType::kUInt8) == OCTET_UINT8 &&
              static_cast<int>(octet::DataType::kInt64) == OCTET_INT64);

namespace {

using octet::Error;
using octet::str;

thread_local std::string last_error;

// Allocation may be what fails, so even keeping the sentence must not throw.
octet_status failed(octet_status status, const char* sentence) noexcept {
  try {
    last_error = sentence;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

template <typename Work>
octet_status guarded(Work work) noexcept {
  try {
    last_error.clear();
    return work();
  } catch (const Error& e) {
    return failed(OCTET_ERROR, e.what());
  } catch (const std::bad_alloc&) {
    return failed(OCTET_ERROR, "memory is used up");
  } catch (const std::exception& e) {
    return failed(OCTET_INTERNAL, e.what());
  } catch (...) {
    return failed(OCTET_INTERNAL, "unknown failure");
  }
}

void need(const void* pointer, const char* what) {
  if (pointer == nullptr) throw Error(str(what, " is a null pointer"));
}

// A struct of the caller, whose header may be older (shorter: what it lacks keeps its default) or newer (longer: what
// this library does not know must be zero).
template <typename Struct>
Struct read_struct(const Struct* given, const Struct& defaults, const char* name) {
  if (given == nullptr) return defaults;
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size < sizeof(size) || size > 4096)
    throw Error(str(name, ": struct_size is ", size, "; start from its ..._INIT macro"));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(Struct) &&
      std::any_of(bytes + sizeof(Struct), bytes + size, [](unsigned char b) { return b != 0; }))
    throw Error(str(name, ": uses members that this version of the library (", octet_version(), ") does not have"));
  Struct out = defaults;
  std::memcpy(&out, given, std::min(size, sizeof(Struct)));
  return out;
}

// Fills the caller's struct as far as its header knows the members.
template <typename Struct>
void write_struct(Struct value, Struct* to, const char* name) {
  need(to, name);
  size_t size = 0;
  std::memcpy(&size, to, sizeof(size));
  if (size < sizeof(size) || size > 4096)
    throw Error(str(name, ": struct_size is ", size, "; start from its ..._INIT macro"));
  value.struct_size = size;
  std::memcpy(to, &value, std::min(size, sizeof(Struct)));
}

std::vector<int> cpu_list(const int32_t* cpus, int32_t count) {
  if (count < 0) throw Error(str("cpu_count is ", count));
  if (count > 0) need(cpus, "cpus");
  return cpus == nullptr ? std::vector<int>() : std::vector<int>(cpus, cpus + count);
}

const octet::TensorInfo& tensor_at(const std::vector<octet::TensorInfo>& tensors, int32_t index, const char* what) {
  if (index < 0 || static_cast<size_t>(index) >= tensors.size())
    throw Error(str("there is no ", what, " ", index, "; the engine has ", tensors.size()));
  return tensors[index];
}

int32_t public_type(octet::DataType type) {
  return static_cast<int32_t>(type);  // both number them alike
}

void write_info(const octet::TensorInfo& tensor, octet_tensor_info* info) {
  octet_tensor_info out = OCTET_TENSOR_INFO_INIT;
  out.name = tensor.name.c_str();
  out.shape = tensor.shape.data();
  out.rank = static_cast<int32_t>(tensor.shape.size());
  out.size = tensor.size();
  out.type = public_type(tensor.type);
  write_struct(out, info, "octet_tensor_info");
}

// As many values as the channels of an image input, where the file names them.
std::vector<double> for_each_channel(const std::vector<double>& values, size_t channels) {
  return values.size() == 1 ? std::vector<double>(channels, values[0]) : values;
}

const octet_engine::Info& info_of(const octet_engine& engine) {
  const std::lock_guard lock(engine.mutex);
  if (!engine.info) {
    auto made = std::make_unique<octet_engine::Info>();
    made->model = engine.engine.model_info();
    for (const std::string& name : made->model.classes) made->classes.push_back(name.c_str());
    const auto& inputs = engine.engine.inputs();
    const bool image = inputs.size() == 1 && inputs[0].shape.size() == 4;
    const auto channels = static_cast<size_t>(image ? inputs[0].shape[made->model.layout == "NHWC" ? 3 : 1] : 1);
    if (!made->model.mean.empty() && !made->model.std.empty() && channels <= 64) {
      made->mean = for_each_channel(made->model.mean, channels);
      made->std = for_each_channel(made->model.std, channels);
      if (made->mean.size() != made->std.size())
        throw Error(str("the file names ", made->mean.size(), " means and ", made->std.size(), " deviations"));
    }
    engine.info = std::move(made);
  }
  return *engine.info;
}

}  // namespace

extern "C" {

const char* octet_last_error(void) {
  return last_error.c_str();
}

const char* octet_version(void) {
  return OCTET_VERSION;
}

octet_status octet_engine_load(const char* path, octet_engine** engine) {
  return guarded([&] {
    need(engine, "engine");
    need(path, "path");
    *engine = nullptr;
    *engine = new octet_engine{octet::Engine::load(path), {}, {}};
    return OCTET_OK;
  });
}

octet_status octet_engine_from_memory(const void* bytes, size_t size, const char* name, octet_engine** engine) {
  return guarded([&] {
    need(engine, "engine");
    need(bytes, "bytes");
    *engine = nullptr;
    *engine = new octet_engine{octet::Engine::from_memory(bytes, size, name ? name : "engine"), {}, {}};
    return OCTET_OK;
  });
}

void octet_engine_free(octet_engine* engine) {
  delete engine;
}

int32_t octet_engine_input_count(const octet_engine* engine) {
  return engine ? static_cast<int32_t>(engine->engine.inputs().size()) : 0;
}

int32_t octet_engine_output_count(const octet_engine* engine) {
  return engine ? static_cast<int32_t>(engine->engine.outputs().size()) : 0;
}

octet_status octet_engine_input(const octet_engine* engine, int32_t index, octet_tensor_info* info) {
  return guarded([&] {
    need(engine, "engine");
    write_info(tensor_at(engine->engine.inputs(), index, "input"), info);
    return OCTET_OK;
  });
}

octet_status octet_engine_output(const octet_engine* engine, int32_t index, octet_tensor_info* info) {
  return guarded([&] {
    need(engine, "engine");
    write_info(tensor_at(engine->engine.outputs(), index, "output"), info);
    return OCTET_OK;
  });
}

int32_t octet_engine_finds_sizes(const octet_engine* engine) {
  return engine && engine->engine.finds_sizes() ? 1 : 0;
}

int32_t octet_engine_profile_count(const octet_engine* engine) {
  return engine ? engine->engine.profiles() : 0;
}

octet_status octet_engine_profile_input(const octet_engine* engine, int32_t profile, int32_t index,
                                        octet_tensor_info* info) {
  return guarded([&] {
    need(engine, "engine");
    write_info(tensor_at(engine->engine.inputs(profile), index, "input"), info);
    return OCTET_OK;
  });
}

octet_status octet_engine_profile_output(const octet_engine* engine, int32_t profile, int32_t index,
                                         octet_tensor_info* info) {
  return guarded([&] {
    need(engine, "engine");
    write_info(tensor_at(engine->engine.outputs(profile), index, "output"), info);
    return OCTET_OK;
  });
}

octet_status octet_engine_find_profile(const octet_engine* engine, const int64_t* shape, int32_t rank,
                                       int32_t* profile) {
  return guarded([&] {
    need(engine, "engine");
    need(shape, "shape");
    need(profile, "profile");
    if (rank < 0) throw Error(str("rank is ", rank));
    *profile = engine->engine.find_profile({shape, shape + rank});
    return OCTET_OK;
  });
}

const char* octet_engine_metadata(const octet_engine* engine, const char* key) {
  if (engine == nullptr || key == nullptr) return nullptr;
  const auto& metadata = engine->engine.metadata();
  for (const auto& [name, value] : metadata)
    if (name == key) return value.c_str();
  return nullptr;
}

int32_t octet_engine_metadata_count(const octet_engine* engine) {
  return engine ? static_cast<int32_t>(engine->engine.metadata().size()) : 0;
}

octet_status octet_engine_metadata_at(const octet_engine* engine, int32_t index, const char** key, const char** value) {
  return guarded([&] {
    need(engine, "engine");
    need(key, "key");
    need(value, "value");
    const auto& metadata = engine->engine.metadata();
    if (index < 0 || static_cast<size_t>(index) >= metadata.size())
      throw Error(str("there is no metadata entry ", index, "; the engine has ", metadata.size()));
    const auto entry = std::next(metadata.begin(), index);
    *key = entry->first.c_str();
    *value = entry->second.c_str();
    return OCTET_OK;
  });
}

octet_status octet_engine_model_info(const octet_engine* engine, octet_model_info* info) {
  return guarded([&] {
    need(engine, "engine");
    const octet_engine::Info& kept = info_of(*engine);
    octet_model_info out = OCTET_MODEL_INFO_INIT;
    const octet::ModelInfo& model = kept.model;
    out.task = model.task.c_str(), out.color_order = model.color_order.c_str(), out.layout = model.layout.c_str();
    out.resize = model.resize.c_str(), out.interpolation = model.interpolation.c_str();
    out.decoder = model.decoder.c_str();
    out.classes = kept.classes.data();
    out.class_count = static_cast<int32_t>(kept.classes.size());
    out.channel_count = static_cast<int32_t>(kept.mean.size());
    if (!kept.mean.empty()) out.mean = kept.mean.data(), out.std = kept.std.data();
    out.shorter_side = model.shorter_side;
    out.central_fraction = model.central_fraction;
    out.exif_orientation = model.exif_orientation ? 1 : 0;
    write_struct(out, info, "octet_model_info");
    return OCTET_OK;
  });
}

octet_status octet_engine_image_format(const octet_engine* engine, int32_t input, octet_image_format* format) {
  return guarded([&] {
    need(engine, "engine");
    const octet::ImageFormat f = engine->engine.image_format(input);
    octet_image_format out = OCTET_IMAGE_FORMAT_INIT;
    std::copy_n(f.channel, 4, out.channel);
    std::copy_n(f.scale, 4, out.scale);
    std::copy_n(f.offset, 4, out.offset);
    write_struct(out, format, "octet_image_format");
    return OCTET_OK;
  });
}

octet_status octet_context_create(const octet_engine* engine, const octet_context_options* options,
                                  octet_context** context) {
  return guarded([&] {
    need(engine, "engine");
    need(context, "context");
    *context = nullptr;
    const octet_context_options given =
        read_struct(options, octet_context_options(OCTET_CONTEXT_OPTIONS_INIT), "octet_context_options");
    octet::ContextOptions chosen;
    chosen.threads = given.threads;
    chosen.isa = given.isa ? given.isa : "";
    chosen.cpus = cpu_list(given.cpus, given.cpu_count);
    chosen.pool.run = given.pool;
    chosen.pool.user = given.pool_user;
    chosen.idle_spin_us = given.idle_spin_us;
    chosen.profile = given.profile;
    *context = new octet_context{engine->engine.create_context(chosen), {}};
    return OCTET_OK;
  });
}

void octet_context_free(octet_context* context) {
  delete context;
}

octet_status octet_context_bind_input(octet_context* context, int32_t index, const float* data) {
  return guarded([&] {
    need(context, "context");
    need(data, "data");
    context->context.bind_input(index, data);
    return OCTET_OK;
  });
}

octet_status octet_context_bind_output(octet_context* context, int32_t index, float* data) {
  return guarded([&] {
    need(context, "context");
    need(data, "data");
    context->context.bind_output(index, data);
    return OCTET_OK;
  });
}

octet_status octet_context_bind_typed_input(octet_context* context, int32_t index, const void* data, int32_t type) {
  return guarded([&] {
    need(context, "context");
    need(data, "data");
    context->context.bind_input(index, data, static_cast<octet::DataType>(type));
    return OCTET_OK;
  });
}

octet_status octet_context_bind_typed_output(octet_context* context, int32_t index, void* data, int32_t type) {
  return guarded([&] {
    need(context, "context");
    need(data, "data");
    context->context.bind_output(index, data, static_cast<octet::DataType>(type));
    return OCTET_OK;
  });
}

octet_status octet_context_bind_image(octet_context* context, int32_t index, const uint8_t* pixels,
                                      const octet_image_format* format) {
  return guarded([&] {
    need(context, "context");
    const octet_image_format given =
        read_struct(format, octet_image_format(OCTET_IMAGE_FORMAT_INIT), "octet_image_format");
    octet::ImageFormat f;
    f.pixel_stride = given.pixel_stride, f.row_stride = given.row_stride, f.image_stride = given.image_stride;
    std::copy_n(given.channel, 4, f.channel);
    std::copy_n(given.scale, 4, f.scale);
    std::copy_n(given.offset, 4, f.offset);
    context->context.bind_image(index, pixels, f);
    return OCTET_OK;
  });
}

octet_status octet_context_run(octet_context* context) {
  return guarded([&] {
    need(context, "context");
    context->context.run();
    return OCTET_OK;
  });
}

octet_status octet_context_result(octet_context* context, int32_t index, octet_tensor_view* view) {
  return guarded([&] {
    need(context, "context");
    octet::TensorView found = context->context.result(index);
    if (context->results.size() <= static_cast<size_t>(index)) context->results.resize(static_cast<size_t>(index) + 1);
    const octet::TensorView& kept = context->results[static_cast<size_t>(index)] = std::move(found);
    octet_tensor_view out = OCTET_TENSOR_VIEW_INIT;
    out.data = kept.data;
    out.shape = kept.shape.data();
    out.rank = static_cast<int32_t>(kept.shape.size());
    out.size = kept.size();
    out.type = public_type(kept.type);
    write_struct(out, view, "octet_tensor_view");
    return OCTET_OK;
  });
}

int32_t octet_context_threads(const octet_context* context) {
  return context ? context->context.threads() : 0;
}

const char* octet_context_isa(const octet_context* context) {
  return context ? context->context.isa() : "";
}

octet_status octet_context_profile(octet_context* context, int32_t runs, int32_t* layer_count) {
  return guarded([&] {
    need(context, "context");
    need(layer_count, "layer_count");
    context->layers = context->context.profile(runs);
    *layer_count = static_cast<int32_t>(context->layers.size());
    return OCTET_OK;
  });
}

octet_status octet_context_layer(const octet_context* context, int32_t index, octet_layer_report* report) {
  return guarded([&] {
    need(context, "context");
    if (index < 0 || static_cast<size_t>(index) >= context->layers.size())
      throw Error(str("there is no layer ", index, "; the last profile has ", context->layers.size()));
    const octet::LayerReport& layer = context->layers[index];
    octet_layer_report out = OCTET_LAYER_REPORT_INIT;
    out.name = layer.name.c_str(), out.op = layer.op.c_str(), out.precision = layer.precision.c_str();
    out.kernel = layer.kernel.c_str(), out.reason = layer.reason.c_str();
    out.microseconds = layer.microseconds;
    write_struct(out, report, "octet_layer_report");
    return OCTET_OK;
  });
}

octet_status octet_throughput_create(const octet_engine* engine, const octet_throughput_options* options,
                                     octet_throughput** throughput) {
  return guarded([&] {
    need(engine, "engine");
    need(throughput, "throughput");
    *throughput = nullptr;
    const octet_throughput_options given =
        read_struct(options, octet_throughput_options(OCTET_THROUGHPUT_OPTIONS_INIT), "octet_throughput_options");
    octet::ThroughputOptions chosen;
    chosen.workers = given.workers;
    chosen.cpus = cpu_list(given.cpus, given.cpu_count);
    chosen.queue = given.queue;
    chosen.isa = given.isa ? given.isa : "";
    chosen.profile = given.profile;
    *throughput = new octet_throughput{engine->engine.create_throughput(chosen)};
    return OCTET_OK;
  });
}

void octet_throughput_free(octet_throughput* throughput) {
  delete throughput;
}

octet_status octet_throughput_submit(octet_throughput* throughput, const float* const* inputs, float* const* outputs,
                                     int32_t wait, uint64_t* ticket) {
  return octet_throughput_submit_then(throughput, inputs, outputs, wait, nullptr, nullptr, ticket);
}

octet_status octet_throughput_submit_then(octet_throughput* throughput, const float* const* inputs,
                                          float* const* outputs, int32_t wait, octet_completion_function done,
                                          void* user, uint64_t* ticket) {
  return guarded([&] {
    need(throughput, "throughput");
    need(inputs, "inputs");
    need(outputs, "outputs");
    octet::Completion completion;
    if (done != nullptr) completion = [done, user](uint64_t finished) { done(user, finished); };
    if (throughput->throughput.submit(inputs, outputs, ticket, wait != 0, std::move(completion))) return OCTET_OK;
    return failed(OCTET_QUEUE_FULL, "the queue is full");
  });
}

octet_status octet_throughput_wait(octet_throughput* throughput, uint64_t ticket) {
  return guarded([&] {
    need(throughput, "throughput");
    throughput->throughput.wait(ticket);
    return OCTET_OK;
  });
}

octet_status octet_throughput_wait_all(octet_throughput* throughput) {
  return guarded([&] {
    need(throughput, "throughput");
    throughput->throughput.wait_all();
    return OCTET_OK;
  });
}

int32_t octet_throughput_workers(const octet_throughput* throughput) {
  return throughput ? throughput->throughput.workers() : 0;
}

}  // extern "C"
