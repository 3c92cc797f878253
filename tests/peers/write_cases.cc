// Writes networks of the zoo as ONNX files, with a random input and what Octet's float executor makes of it, for
// compare_outputs.py: FOLDER/<case>/{model.onnx, input.npy, output.npy}.
#include <cstdio>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "ir/infer.h"
#include "models/zoo.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "passes/fold_batch_norm.h"
#include "passes/prune/cut.h"
#include "train/graph_runner.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

// NumPy's format 1.0.
std::string npy(const std::vector<int64_t>& shape, std::span<const float> values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int64_t d : shape) header += std::to_string(d) + ",";
  header += "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  return out + header + std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Statistics as training would leave them: with the fresh ones (mean 0, variance 1) signals die out or explode.
void randomize_statistics(ir::Graph& graph, std::mt19937& random) {
  std::uniform_real_distribution<float> spread(0.5f, 1.5f);
  for (const auto& node : graph.nodes()) {
    if (node->kind != ir::OpKind::kBatchNormalization) continue;
    for (size_t i : {size_t{1}, size_t{2}, size_t{3}, size_t{4}}) {
      std::vector<float> values = node->input(i)->constant->to_floats();
      for (float& v : values) v = i == 2 || i == 3 ? 0.2f * (spread(random) - 1) : spread(random);
      graph.set_constant(node->input(i), ir::Tensor::of<float>(node->input(i)->constant->shape(), values));
    }
  }
}

// kPruned: to about half of its channels, of counts that are multiples of nothing.
enum class Form { kFloat, kFolded, kPruned };

void write_case(const fs::path& folder, const std::string& arch, std::array<int64_t, 3> input, int opset, Form form) {
  std::mt19937 random(7);
  models::ModelOptions options = models::default_options(arch);
  options.input = input;
  options.num_classes = 10;
  ir::Graph graph = models::build_model(options);
  randomize_statistics(graph, random);
  if (form == Form::kFolded) passes::fold_batch_norm(graph);
  ir::infer_shapes(graph);
  if (form == Form::kPruned) {
    const passes::ChannelGroups groups(graph, {.granularity = 1, .min_filters = 1});
    const std::vector<double> scores = groups.scores();
    graph = passes::cut_channels(graph, groups.at(scores[scores.size() / 2]));
  }
  static constexpr const char* kEndings[] = {"", "_folded", "_pruned"};
  const fs::path out = folder / (arch + kEndings[static_cast<int>(form)] + "_opset" + std::to_string(opset));
  fs::create_directories(out);
  onnx::export_model(graph, out / "model.onnx", {.opset = opset});
  // The executor runs what was read back, so that import and export are both in the comparison.
  ir::Graph read = onnx::import_model(out / "model.onnx");
  ir::infer_shapes(read);
  train::GraphRunner runner(read);
  const std::vector<int64_t> shape = {2, input[0], input[1], input[2]};
  std::vector<float> x(static_cast<size_t>(2 * input[0] * input[1] * input[2]));
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  const train::FloatArray y = runner.run({{shape, x}}).at(0);
  write_file_atomically(out / "input.npy", npy(shape, x));
  write_file_atomically(out / "output.npy", npy(y.shape, y.values));
  std::printf("%s\n", out.c_str());
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    octet::write_case(argv[1], "resnet20", {1, 28, 28}, 19, octet::Form::kFloat);
    octet::write_case(argv[1], "resnet20", {1, 28, 28}, 13, octet::Form::kFolded);
    octet::write_case(argv[1], "resnet18", {3, 64, 64}, 19, octet::Form::kFloat);
    octet::write_case(argv[1], "resnet50", {3, 64, 64}, 21, octet::Form::kFolded);
    octet::write_case(argv[1], "mobilenet_v1", {3, 64, 64}, 19, octet::Form::kFloat);
    octet::write_case(argv[1], "mobilenet_v2", {3, 64, 64}, 20, octet::Form::kFloat);
    octet::write_case(argv[1], "efficientnet_b0", {3, 64, 64}, 19, octet::Form::kFloat);
    octet::write_case(argv[1], "resnet50_v2", {3, 64, 64}, 13, octet::Form::kFloat);
    octet::write_case(argv[1], "mobilenet_v3_small", {3, 64, 64}, 13, octet::Form::kFloat);
    octet::write_case(argv[1], "inception_v3", {3, 96, 96}, 19, octet::Form::kFolded);
    octet::write_case(argv[1], "vgg16_bn", {3, 32, 32}, 13, octet::Form::kFloat);
    for (const octet::models::ModelInfo& model : octet::models::all_models()) {
      const int64_t side = model.name == "inception_v3" ? 75 : 32;
      octet::write_case(argv[1], model.name, {3, side, side}, 19, octet::Form::kPruned);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
