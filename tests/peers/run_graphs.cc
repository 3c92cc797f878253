// Compiles ONNX files and runs them in the engine, for scripts that compare with other programs:
//   peers_run_graphs [--dump] FOLDER...
//   peers_run_graphs --operators       a line "NAME how behind-or-not" each, as onnx_node_tests.py reads them
// FOLDER holds model.onnx and input_0.f32, input_1.f32 ... (raw float32 in the order of the shape). Afterwards it holds
// output_0.f32 ... (integers as floats), evaluated_0.f32 ... (by ir/evaluate_graph.h) and steps.txt (a line "kind
// precision reason" for each step), or error.txt with the sentence a user would read; with --dump also one file of
// int32 codes (codes_<n>.i32) for every quantized tensor that exists in memory, named in codes.txt ("n scale zero_point
// name").
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "dense/operators.h"
#include "engine/executor.h"
#include "ir/evaluate_graph.h"
#include "lower/lower.h"
#include "onnx/fold.h"
#include "onnx/import.h"
#include "onnx/upgrade.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

template <typename T>
void write_raw(const fs::path& path, const std::vector<T>& values) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::vector<float> read_floats(const fs::path& path, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  require(in.gcount() == static_cast<std::streamsize>(values.size() * sizeof(float)), path.string(), ": expected ",
          count, " floats");
  return values;
}

std::vector<float> as_floats(const dense::Tensor& tensor) {
  std::vector<float> out;
  dense::dispatch(tensor.type(), [&]<typename T>() {
    for (const T& v : tensor.values<T>()) out.push_back(static_cast<float>(v));
  });
  return out;
}

// What the plain evaluator says of the same inputs, where it has all operators: evaluated_0.f32 ...
void evaluate(const fs::path& folder, const ir::Graph& graph, const std::vector<std::vector<float>>& inputs) {
  std::vector<ir::Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::TensorType& type = graph.inputs()[i]->type;
    if (type.data_type != ir::DataType::kFloat32 || !ir::is_static(*type.shape)) return;
    tensors.push_back(ir::Tensor::of<float>(*type.shape, inputs[i]));
  }
  try {
    const std::vector<ir::Tensor> outputs = ir::evaluate_graph(graph, tensors);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].data_type() == ir::DataType::kFloat32)
        write_raw(folder / ("evaluated_" + std::to_string(i) + ".f32"), outputs[i].to_floats());
  } catch (const UserError&) {  // evaluate.h says what it refuses
  }
}

void run(const fs::path& folder, bool dump) {
  const ir::Graph graph = onnx::import_model(folder / "model.onnx");
  const auto plan = std::make_shared<const engine::Plan>(lower::lower(graph, {.batch = 0}));
  engine::Executor executor(plan);
  std::ofstream steps(folder / "steps.txt");
  for (const engine::Step& s : plan->steps) steps << s.kind << (s.int8 ? " int8 " : " fp32 ") << s.reason << '\n';
  std::vector<std::vector<float>> inputs, outputs;
  std::vector<const float*> in;
  std::vector<float*> out;
  for (int id : plan->inputs) {
    const std::string file = "input_" + std::to_string(inputs.size()) + ".f32";
    inputs.push_back(read_floats(folder / file, plan->buffers[id].elements()));
    in.push_back(inputs.back().data());
  }
  for (int id : plan->outputs) {
    outputs.emplace_back(static_cast<size_t>(plan->buffers[id].elements()));
    out.push_back(outputs.back().data());
  }
  if (!dump) {
    executor.run(in.data(), out.data());
  } else {
    std::ofstream names(folder / "codes.txt");
    int index = 0;
    for (const engine::TensorDump& t : executor.run_and_dump(in.data(), out.data())) {
      if (!t.is_codes) continue;
      char line[64];
      std::snprintf(line, sizeof line, "%d %.9g %d ", index, t.scale, t.zero_point);
      names << line << t.name << '\n';
      write_raw(folder / ("codes_" + std::to_string(index++) + ".i32"), t.codes);
    }
  }
  const auto output_file = [&](size_t i) { return folder / ("output_" + std::to_string(i) + ".f32"); };
  if (plan->program) {
    for (size_t i = 0; i < executor.results().size(); ++i) write_raw(output_file(i), as_floats(executor.results()[i]));
    return;
  }
  for (size_t i = 0; i < outputs.size(); ++i) write_raw(output_file(i), outputs[i]);
  evaluate(folder, graph, inputs);
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  bool dump = false;
  if (argc == 2 && std::strcmp(argv[1], "--operators") == 0) {
    std::set<std::string> folded;
    for (const std::string& name : octet::onnx::folded_operators()) folded.insert(name);
    const std::set<std::string> elsewhere{"Constant", "If", "Shape", "Size", "QLinearConv", "QLinearMatMul"};
    for (const std::string& name : octet::onnx::supported_operators()) {
      const bool rewritten = octet::onnx::is_rewritten(name);
      const bool dense = octet::dense::find_operator(name) != nullptr;
      const bool graph = octet::ir::find_op(name) || rewritten || elsewhere.count(name);
      std::printf("%s %s %s\n", name.c_str(),
                  folded.count(name) ? rewritten ? "both" : "folded"
                  : graph            ? "any"
                                     : "behind",
                  dense ? "behind" : "-");
    }
    return 0;
  }
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--dump") == 0) {
      dump = true;
      continue;
    }
    std::printf("%s\n", argv[i]);
    std::fflush(stdout);  // a program that dies says on what
    try {
      octet::run(argv[i], dump);
    } catch (const octet::UserError& e) {
      std::ofstream(std::filesystem::path(argv[i]) / "error.txt") << e.what() << '\n';
    } catch (const std::exception& e) {
      std::ofstream(std::filesystem::path(argv[i]) / "error.txt") << "INTERNAL ERROR " << e.what() << '\n';
    }
  }
  return 0;
}
