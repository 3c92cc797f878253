#include "onnx/node_order.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "dense/operators.h"
#include "ir/ops.h"
#include "onnx/expand_qlinear.h"
#include "onnx/fold.h"
#include "onnx/import.h"
#include "onnx/subgraphs.h"
#include "onnx/upgrade.h"

namespace octet::onnx {
namespace {

bool is_default_domain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

bool is_known(const proto::Node& node) {
  if (is_qlinear(node.domain, node.op_type)) return true;
  if (!is_default_domain(node.domain)) return false;
  const std::string& op = node.op_type;
  if (op == "FakeQuantize") return false;  // Octet's own; files hold QuantizeLinear and DequantizeLinear
  return ir::find_op(op) || can_fold(op) || is_rewritten(op) || op == "Constant" || op == "Shape" || op == "Size" ||
         op == "If" || op == "Loop" || dense::find_operator(op);
}

}  // namespace

std::vector<std::string> supported_operators() {
  std::set<std::string> names{"Constant", "If", "Shape", "Size", "QLinearConv", "QLinearMatMul"};
  for (const ir::OpInfo& info : ir::all_ops()) names.insert(info.name);
  for (const auto& more : {folded_operators(), rewritten_operators(), dense::operator_names()})
    names.insert(more.begin(), more.end());
  names.erase("FakeQuantize");
  return {names.begin(), names.end()};
}

std::string text_of(const proto::Node& node) {
  const std::string op = is_default_domain(node.domain) ? node.op_type : node.domain + "::" + node.op_type;
  if (!node.name.empty()) return str("node '", node.name, "' (", op, ")");
  return str("the node (", op, ") that makes '", node.outputs.empty() ? "" : node.outputs[0], "'");
}

void require_known(const std::vector<const proto::Node*>& nodes) {
  const proto::Node* first = nullptr;
  std::vector<std::string> others;
  for (const proto::Node* node : nodes) {
    if (is_known(*node)) continue;
    if (!first) {
      first = node;
    } else if (node->op_type != first->op_type && std::count(others.begin(), others.end(), node->op_type) == 0 &&
               others.size() < 16) {
      others.push_back(node->op_type);
    }
  }
  if (!first) return;
  if (const std::string why = refused_integer_op(first->op_type); !why.empty()) fail(text_of(*first), ": ", why);
  std::string more;
  for (const std::string& op : others) more += (more.empty() ? " (nor are " : ", ") + op;
  if (!more.empty()) more += " of this model)";
  fail(text_of(*first), ": operator ", first->op_type, " of domain '",
       is_default_domain(first->domain) ? "ai.onnx" : first->domain, "' is not supported", more,
       "; docs/operators.md lists what is");
}

std::vector<const proto::Node*> live_nodes_in_order(const proto::Graph& graph) {
  const std::vector<proto::Node>& nodes = graph.nodes;
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].outputs)
      if (!name.empty() && !producer.emplace(name, i).second)
        fail(text_of(nodes[i]), ": makes '", name, "', which another node makes already");
  // What the outputs need.
  std::vector<bool> live(nodes.size(), false);
  std::vector<size_t> stack;
  const auto visit = [&](const std::string& name) {
    const auto it = producer.find(name);
    if (name.empty() || it == producer.end() || live[it->second]) return;
    live[it->second] = true;
    stack.push_back(it->second);
  };
  for (const proto::ValueInfo& output : graph.outputs) visit(output.name);
  while (!stack.empty()) {
    const size_t i = stack.back();
    stack.pop_back();
    for (const std::string& name : names_read(nodes[i])) visit(name);
  }
  // Execution order: that of the file wherever it is one.
  std::vector<size_t> missing(nodes.size(), 0);
  std::vector<std::vector<size_t>> users(nodes.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  size_t left = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!live[i]) continue;
    ++left;
    for (const std::string& name : names_read(nodes[i])) {
      const auto it = producer.find(name);
      if (name.empty() || it == producer.end()) continue;
      ++missing[i];
      users[it->second].push_back(i);
    }
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<const proto::Node*> out;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    out.push_back(&nodes[i]);
    for (const size_t user : users[i])
      if (--missing[user] == 0) ready.push(user);
  }
  if (out.size() < left)
    for (size_t i = 0; i < nodes.size(); ++i)
      if (live[i] && missing[i] > 0) fail(text_of(nodes[i]), ": depends on its own output (a cycle)");
  return out;
}

}  // namespace octet::onnx
