// The C interface over the C++ one: contexts and throughput.
#include <utility>

#include "base/error.h"
#include "engine/c_handles.h"

namespace {

using octet::Error;
using octet::str;
using octet::c_interface::cpu_list;
using octet::c_interface::guarded;
using octet::c_interface::last_error;
using octet::c_interface::need;
using octet::c_interface::public_type;
using octet::c_interface::read_struct;
using octet::c_interface::write_struct;

}  // namespace

extern "C" {

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
    return octet::c_interface::failed(last_error(), OCTET_QUEUE_FULL, "the queue is full");
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
