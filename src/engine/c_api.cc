// The C interface over the C++ one: handles, statuses and sentences instead of objects and exceptions. Engines;
// contexts and throughput are in c_api_run.cc.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "engine/c_handles.h"

static_assert(static_cast<int>(octet::DataType::kUInt8) == OCTET_UINT8 &&
              static_cast<int>(octet::DataType::kInt64) == OCTET_INT64);

namespace octet::c_interface {

std::string& last_error() {
  thread_local std::string sentence;
  return sentence;
}

std::vector<int> cpu_list(const int32_t* cpus, int32_t count) {
  if (count < 0) throw Error(str("cpu_count is ", count));
  if (count > 0) need(cpus, "cpus");
  return cpus == nullptr ? std::vector<int>() : std::vector<int>(cpus, cpus + count);
}

int32_t public_type(DataType type) {
  return static_cast<int32_t>(type);  // both number them alike
}

}  // namespace octet::c_interface

namespace {

using octet::Error;
using octet::str;
using octet::c_interface::guarded;
using octet::c_interface::last_error;
using octet::c_interface::need;
using octet::c_interface::public_type;
using octet::c_interface::write_struct;

const octet::TensorInfo& tensor_at(const std::vector<octet::TensorInfo>& tensors, int32_t index, const char* what) {
  if (index < 0 || static_cast<size_t>(index) >= tensors.size())
    throw Error(str("there is no ", what, " ", index, "; the engine has ", tensors.size()));
  return tensors[index];
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
  return last_error().c_str();
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

}  // extern "C"
