#include "onnx/import.h"

#include <sstream>

#include "base/files.h"
#include "base/name_lines.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "onnx/builder.h"
#include "onnx/fuse_layer_norm.h"
#include "onnx/fuse_qdq.h"
#include "onnx/inline_functions.h"
#include "onnx/lift_codes.h"
#include "onnx/proto.h"
#include "onnx/tensor_data.h"

namespace octet::onnx {
namespace {

constexpr const char* kOpsetAdvice = "supported are opsets 7 to 25";

int default_opset(const proto::Model& model) {
  static_assert(kOldestOpset == 7 && kNewestOpset == 25);
  for (const auto& [domain, version] : model.opset_imports) {
    if (!domain.empty() && domain != "ai.onnx") continue;
    if (version < kOldestOpset || version > kNewestOpset)
      fail("is of opset ", version, "; ", kOpsetAdvice, ": convert it with onnx.version_converter or export it again");
    return static_cast<int>(version);
  }
  fail("states no opset of the default domain; ", kOpsetAdvice);
}

// Folding mostly rearranges what the file holds already; 64 MiB are for the rest.
int64_t fold_budget(const proto::Graph& graph, size_t file_bytes) {
  int64_t bytes = static_cast<int64_t>(file_bytes);
  for (const proto::Tensor& tensor : graph.initializers) {
    if (!tensor.external) continue;
    int64_t count = 8;
    for (const int64_t d : tensor.dims) count = d > 0 && count < (int64_t{1} << 40) / d ? count * d : 8;
    bytes += count;
  }
  return 8 * bytes + (int64_t{64} << 20);
}

std::string take_metadata(ir::Graph& graph, const char* key) {
  const auto it = graph.metadata.find(key);
  if (it == graph.metadata.end()) return "";
  std::string text = it->second;
  graph.metadata.erase(it);
  return text;
}

void mark_trainable(ir::Graph& graph, const std::string& names) {
  std::istringstream lines(names);
  for (std::string name; std::getline(lines, name);) {
    ir::Value* value = graph.find_value(unescape_line(name));
    if (value && value->is_constant()) value->trainable = true;
  }
}

ir::Graph import_parsed(proto::Model model, size_t file_bytes, const std::filesystem::path& directory,
                        const ImportOptions& options) {
  if (!model.graph) fail("holds no graph: this is not an ONNX model");
  const int opset = default_opset(model);
  inline_functions(model, opset);
  ExternalFiles files(directory);
  const int64_t budget = fold_budget(*model.graph, file_bytes);
  ir::Graph graph = Builder(*model.graph, opset, files, budget, options.input_shapes).build();
  for (const auto& [key, value] : model.metadata) graph.metadata[key] = value;
  graph.remove_dead();  // quantizers of constants whose codes were moved or folded
  fuse_layer_norm(graph);
  lift_codes(graph);
  fuse_qdq(graph, take_metadata(graph, kFakeQuantizeKey));
  graph.remove_dead();
  mark_trainable(graph, take_metadata(graph, kTrainableKey));
  ir::infer_shapes(graph);
  ir::verify(graph);
  return graph;
}

ir::Graph import_named(std::string_view bytes, const std::filesystem::path& directory, const std::string& name,
                       const ImportOptions& options) {
  try {
    if (bytes.empty()) fail("is empty");
    return import_parsed(proto::parse_model(bytes), bytes.size(), directory, options);
  } catch (const UserError& e) {
    throw UserError(name + ": " + e.what(), e.code());
  }
}

}  // namespace

ir::Graph import_bytes(std::string_view bytes, const std::filesystem::path& directory_of_external_data,
                       const ImportOptions& options) {
  return import_named(bytes, directory_of_external_data, "ONNX model", options);
}

ir::Graph import_model(const std::filesystem::path& path, const ImportOptions& options) {
  const MappedFile file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const std::filesystem::path parent = path.parent_path();
  return import_named(bytes, parent.empty() ? "." : parent, path.string(), options);
}

}  // namespace octet::onnx
