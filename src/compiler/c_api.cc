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

namespace {

using octet::Error;
using octet::str;

thread_local std::string last_compile_error;

// Allocation may be what fails, so even keeping the sentence must not throw.
octet_status failed(octet_status status, const char* sentence) noexcept {
  try {
    last_compile_error = sentence;
  } catch (...) {
    last_compile_error.clear();
  }
  return status;
}

template <typename Work>
octet_status guarded(Work work) noexcept {
  try {
    last_compile_error.clear();
    work();
    return OCTET_OK;
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

// As octet/octet.h has it: what an older header lacks keeps its default, what a newer one has more must be zero.
octet::CompileOptions read_options(const octet_compile_options* given) {
  octet_compile_options options = OCTET_COMPILE_OPTIONS_INIT;
  if (given != nullptr) {
    const size_t size = given->struct_size;
    if (size < sizeof(size) || size > 4096)
      throw Error(str("octet_compile_options: struct_size is ", size, "; start from its ..._INIT macro"));
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    if (size > sizeof(options) &&
        std::any_of(bytes + sizeof(options), bytes + size, [](unsigned char b) { return b != 0; }))
      throw Error("octet_compile_options: uses members that this version of the library does not have");
    std::memcpy(&options, given, std::min(size, sizeof(options)));
  }
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
