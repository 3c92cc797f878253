// compile_and_run ONNX SHAPE: with the installed libraries alone, compiles and runs once. "octet::Error: ..." on
// standard error and exit status 3 where Octet says no: its errors cross both libraries.
#include <octet/compiler.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    octet::CompileOptions options;
    options.input_shapes = {argv[2]};
    const std::string bytes = octet::compile(argv[1], options);
    const octet::Engine engine = octet::Engine::from_memory(bytes.data(), bytes.size());
    std::vector<float> x(static_cast<size_t>(engine.inputs()[0].size()), 0.5f), y;
    engine.create_context().run(x, y);
    std::printf("%zu bytes, %zu numbers\n", bytes.size(), y.size());
    return y.empty();
  } catch (const octet::Error& e) {
    std::fprintf(stderr, "octet::Error: %s\n", e.what());
    return 3;
  }
}
