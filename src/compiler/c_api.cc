// The C interface of the compiler over the C++ one.
#include <octet/compiler.h>
#include <octet/octet_compiler.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "base/error.h"
#include "engine/c_interface.h"

namespace {

using octet::Error;
using octet::str;
using octet::c_interface::need;
using octet::c_interface::read_struct;

thread_local std::string last_compile_error;

template <typename Work>
octet_status guarded(Work work) noexcept {
  return octet::c_interface::guarded(last_compile_error, [&] {
    work();
    return OCTET_OK;
  });
}

octet::CompileOptions read_options(const octet_compile_options* given) {
  const octet_compile_options options =
      read_struct(given, octet_compile_options(OCTET_COMPILE_OPTIONS_INIT), "octet_compile_options");
  if (options.input_shape_count < 0) throw Error(str("input_shape_count is ", options.input_shape_count));
  if (options.input_shape_count > 0) need(options.input_shapes, "input_shapes");
  octet::CompileOptions out;
  out.batch = options.batch;
  for (int32_t i = 0; i < options.input_shape_count; ++i) {
    need(options.input_shapes[i], "an input shape");
    out.input_shapes.emplace_back(options.input_shapes[i]);
  }
  out.isa = options.isa ? options.isa : "";
  out.threads = options.threads;
  out.time_kernels = options.time_kernels != 0;
  return out;
}

}  // namespace

extern "C" {

octet_status octet_compile_file(const char* onnx_path, const char* engine_path, const octet_compile_options* options) {
  return guarded([&] {
    need(onnx_path, "onnx_path");
    need(engine_path, "engine_path");
    octet::compile_file(onnx_path, engine_path, read_options(options));
  });
}

octet_status octet_compile_memory(const void* onnx, size_t size, const char* name, const octet_compile_options* options,
                                  void** engine, size_t* engine_size) {
  return guarded([&] {
    need(onnx, "onnx");
    need(engine, "engine");
    need(engine_size, "engine_size");
    *engine = nullptr;
    *engine_size = 0;
    const std::string bytes = octet::compile(onnx, size, read_options(options), name ? name : "model");
    void* const memory = std::malloc(bytes.size());
    if (memory == nullptr) throw std::bad_alloc();
    std::memcpy(memory, bytes.data(), bytes.size());
    *engine = memory;
    *engine_size = bytes.size();
  });
}

void octet_compile_free(void* engine) {
  std::free(engine);
}

const char* octet_compile_last_error(void) {
  return last_compile_error.c_str();
}

}  // extern "C"
