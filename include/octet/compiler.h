// Octet's compiler: from an ONNX file to an engine file, in a program of one's own.
//
//   octet::compile_file("model.qdq.onnx", "model.octet");
//   octet::Engine engine = octet::Engine::load("model.octet");
//
// or without a file between:
//
//   const std::string bytes = octet::compile("model.qdq.onnx");
//   octet::Engine engine = octet::Engine::from_memory(bytes.data(), bytes.size());
//
// What `octet compile` does: a quantized network (of octet quantize, or of other tools that write QDQ) becomes INT8,
// what has no quantizers FP32. It is a library of its own beside the engine (octet::compiler, liboctet_compiler.so).
// Errors a person can mend are thrown as octet::Error with one clear sentence. The same in C: octet/octet_compiler.h.
// This header needs C++17.
#pragma once
#include <octet/engine.h>

#include <cstdint>
#include <string>
#include <vector>

namespace octet {

struct CompileOptions {
  int64_t batch = 0;  // images at a time; 0: as the file says, 1 where it leaves that open
  // Of inputs whose sizes the file leaves open, as octet compile --input-shape takes them: "1x3x224x224" for the only
  // input, "NAME:1x3x224x224" for one of several.
  std::vector<std::string> input_shapes;
  std::string isa;            // that kernels are chosen for; empty: the best of this CPU. The engine runs on every CPU
  int threads = 0;            // that kernels are chosen for; 0: as many CPUs as this process may use
  bool time_kernels = false;  // chooses kernels by running them for some seconds, not by estimates
};

// The bytes of an engine file. Error, naming the file, for one that cannot be read or compiled.
std::string compile(const std::string& onnx_path, const CompileOptions& options = {});
// The same for the bytes of an ONNX file; `name` is for messages.
std::string compile(const void* onnx, size_t size, const CompileOptions& options = {},
                    const std::string& name = "model");
// Writes the engine file whole or not at all, in place of one that is there.
void compile_file(const std::string& onnx_path, const std::string& engine_path, const CompileOptions& options = {});

}  // namespace octet
