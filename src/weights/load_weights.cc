#include "weights/load_weights.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/traits.h"

namespace octet::weights {
namespace {

using State = LoadedWeight::State;

// Scale, shift, mean and variance of a normalization; weights and biases; parameters that are data of their own.
bool is_weight(const ir::Value& constant) {
  if (constant.type.data_type != ir::DataType::kFloat32) return false;
  if (constant.trainable) return true;
  for (const ir::Node* user : constant.users)
    for (size_t i = 0; i < user->inputs.size(); ++i)
      if (user->inputs[i] == &constant &&
          (ir::is_parameter_input(user->kind, i) || (user->kind == ir::OpKind::kBatchNormalization && i > 0)))
        return true;
  return false;
}

// The name of a bias in the file that node would have, where a normalization follows it in the network and there is
// none in the file.
std::string folded_bias(const ir::Node& node, const checkpoint::NamedTensors& file) {
  if (node.kind != ir::OpKind::kConv || node.inputs.size() > 2 || node.output()->users.size() != 1) return "";
  const ir::Node* next = node.output()->users[0];
  if (next->kind != ir::OpKind::kBatchNormalization || file.contains(next->input(3)->name)) return "";
  const std::string bias = node.name + ".bias";
  return file.contains(node.input(1)->name) && file.contains(bias) ? bias : "";
}

// timm's vision transformers have their class token apart; here it is row 0 of the position embedding.
checkpoint::NamedTensors with_class_token(checkpoint::NamedTensors file, const ir::Graph& graph) {
  const auto token = file.find("cls_token"), places = file.find("pos_embed");
  const ir::Value* own = graph.find_value("cls_token");
  if (token == file.end() || places == file.end() || (own != nullptr && own->is_constant())) return file;
  const int64_t width = token->second.size();
  std::vector<float> sum = places->second.to_floats();
  const std::vector<float> first = token->second.to_floats();
  if (width == 0 || places->second.shape().empty() || places->second.shape().back() != width ||
      sum.size() < first.size())
    return file;
  for (size_t i = 0; i < first.size(); ++i) sum[i] += first[i];
  places->second = ir::Tensor::of<float>(places->second.shape(), sum);
  file.erase(token);
  return file;
}

std::string examples(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 3); ++i) out += (i > 0 ? ", " : "") + names[i];
  return names.size() > 3 ? out + " ..." : out;
}

}  // namespace

int64_t WeightReport::count(State state) const {
  return std::count_if(weights.begin(), weights.end(), [&](const LoadedWeight& w) { return w.state == state; });
}

WeightReport load_weights(ir::Graph& graph, const checkpoint::NamedTensors& as_written) {
  const checkpoint::NamedTensors file = with_class_token(as_written, graph);
  WeightReport report;
  std::set<std::string> used;
  for (ir::Value* constant : graph.constants()) {
    if (!is_weight(*constant)) continue;
    LoadedWeight& row = report.weights.emplace_back();
    row = {.name = constant->name, .state = State::kMissing, .network = *constant->type.shape, .file = {}};
    const auto found = file.find(constant->name);
    if (found == file.end()) continue;
    used.insert(found->first);
    row.file = found->second.shape();
    row.state = row.file == row.network ? State::kLoaded : State::kMismatched;
    if (row.state == State::kLoaded) graph.set_constant(constant, found->second);
  }
  for (const auto& node : graph.nodes())
    if (const std::string bias = folded_bias(*node, file); !bias.empty()) {
      used.insert(bias);
      report.weights.push_back({.name = bias, .state = State::kFolded, .network = {}, .file = file.at(bias).shape()});
    }
  for (const auto& [name, tensor] : file)
    if (!used.contains(name)) report.unused.push_back(name);
  return report;
}

void require_loaded(const WeightReport& report, const std::string& path, bool allow_modification) {
  std::vector<std::string> names, mismatched, folded;
  for (const LoadedWeight& w : report.weights) {
    if (w.state == State::kMismatched)
      mismatched.push_back(str(w.name, " is ", ir::shape_string(w.file), " in the file and ",
                               ir::shape_string(w.network), " in the network"));
    else if (w.state == State::kFolded)
      folded.push_back(w.name);
    else if (w.state == State::kMissing)
      names.push_back(w.name);
  }
  if (report.count(State::kLoaded) == 0 && mismatched.empty())
    fail_usage(path, ": holds no weight of the network: its names are ",
               report.unused.empty() ? "none" : examples(report.unused), ", the network's ", examples(names),
               "; model.arch and model.layout must be those that the file was made with");
  if (!allow_modification && !mismatched.empty())
    fail_usage(path, ": ", mismatched.size(), " of ", report.weights.size(),
               " weights of the network have another shape there: ", examples(mismatched),
               ". To train a pruned network as it is, set model.load_graph: true; to start these weights from random "
               "ones, set model.allow_loaded_model_modification: true");
  if (!allow_modification && !folded.empty())
    fail_usage(path, ": its batch norms are folded into biases that the network does not have (", examples(folded),
               "). Set model.load_graph: true to train its graph, name a file from before the folding, or set "
               "model.allow_loaded_model_modification: true to leave the biases out");
  if (report.count(State::kLoaded) == 0) fail_usage(path, ": no weight fits the network: ", examples(mismatched));
}

void require_all_loaded(const WeightReport& report, const std::string& path) {
  std::vector<std::string> lacking;
  for (const LoadedWeight& w : report.weights)
    if (w.state == State::kMissing)
      lacking.push_back(str(w.name, " is not in the file"));
    else if (w.state == State::kMismatched)
      lacking.push_back(
          str(w.name, " is ", ir::shape_string(w.file), " there and ", ir::shape_string(w.network), " in the network"));
    else if (w.state == State::kFolded)
      lacking.push_back(str(w.name, " is there, of a folded batch norm, and not in the network"));
  if (lacking.empty()) return;
  std::string unused = report.unused.empty() ? "" : "; of the file are not used: " + examples(report.unused);
  fail_usage(path, ": does not hold the whole network: ", lacking.size(), " of ", report.weights.size(),
             " weights do not fit (", examples(lacking), ")", unused,
             "; name the network that it was made with, with its number of classes");
}

}  // namespace octet::weights
