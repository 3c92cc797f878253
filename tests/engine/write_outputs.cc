// write_outputs ENGINE FILE: the bytes of all outputs for fixed inputs, with 2 threads on OCTET_ISA or the CPU's best
// instruction set, whose name goes to standard output. Programs of different CPUs are to write the same file.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <vector>

#include "octet/engine.h"

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const octet::Engine engine = octet::Engine::load(argv[1]);
  octet::ContextOptions options;
  options.threads = 2;
  octet::Context context = engine.create_context(options);
  std::vector<std::vector<float>> inputs, outputs;
  uint32_t state = 1;
  for (const octet::TensorInfo& t : engine.inputs()) {
    std::vector<float>& values = inputs.emplace_back(static_cast<size_t>(t.size()));
    for (float& v : values) v = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2.0f;
    context.bind_input(static_cast<int>(inputs.size()) - 1, values.data());
  }
  for (const octet::TensorInfo& t : engine.outputs()) outputs.emplace_back(static_cast<size_t>(t.size()));
  for (size_t i = 0; i < outputs.size(); ++i) context.bind_output(static_cast<int>(i), outputs[i].data());
  context.run();
  std::ofstream file(argv[2], std::ios::binary);
  for (const std::vector<float>& values : outputs)
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
  file.close();
  std::puts(context.isa());
  return file ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
