// The installed C++ interface of the compiler.
#include <octet/compiler.h>

#include <exception>
#include <utility>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/files.h"
#include "compiler/network.h"
#include "engine/api_error.h"
#include "engine/engine_file.h"
#include "engine/tactics.h"
#include "ir/verify.h"
#include "lower/lower.h"

namespace octet {
namespace {

engine::Plan plan_of(const ir::Graph& graph, const CompileOptions& options) {
  ir::check_finite_constants(graph);
  if (options.batch < 0 || options.batch > 65'536) fail("batch = ", options.batch, " is outside 0..65536");
  if (options.threads < 0 || options.threads > 1024) fail("threads = ", options.threads, " is outside 0..1024");
  const Isa isa = options.isa.empty() ? default_isa() : parse_isa(options.isa);
  engine::Plan plan = lower::lower(graph, {.batch = options.batch, .input_shape = {}, .isa = isa, .dump_passes = {}});
  const engine::TacticOptions tactics{.isa = isa, .threads = options.threads};
  if (options.time_kernels)
    engine::choose_tactics_by_timing(plan, tactics);
  else
    engine::choose_tactics_by_model(plan, tactics);
  return plan;
}

engine::Plan plan_of_file(const std::string& path, const CompileOptions& options) {
  return plan_of(compiler::read_network(path, ir::parse_input_shapes(options.input_shapes)), options);
}

}  // namespace

std::string compile(const std::string& onnx_path, const CompileOptions& options) {
  return translated([&] { return engine::engine_file_bytes(plan_of_file(onnx_path, options)); });
}

std::string compile(const void* onnx, size_t size, const CompileOptions& options, const std::string& name) {
  if (onnx == nullptr) throw Error(str(name, ": the pointer to its bytes is null"));
  return translated([&] {
    const std::string_view bytes(static_cast<const char*>(onnx), size);
    const ir::Graph graph = compiler::read_network_bytes(bytes, name, ir::parse_input_shapes(options.input_shapes));
    return engine::engine_file_bytes(plan_of(graph, options));
  });
}

void compile_file(const std::string& onnx_path, const std::string& engine_path, const CompileOptions& options) {
  translated([&] { engine::save_engine(plan_of_file(onnx_path, options), engine_path); });
}

}  // namespace octet
