#include "quant/node_selection.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "dense/program.h"

namespace octet::quant {
namespace {

using ir::Graph;
using ir::Node;

constexpr const char* kForms =
    "one of name, regex, op and chain, as in [\"head/*\", {op: Sigmoid}, {chain: Conv > Relu}]";

std::string unknown_operator(const std::string& op) {
  if (ir::find_op(op)) return "";
  std::vector<std::string> names;
  for (const ir::OpInfo& info : ir::all_ops()) names.push_back(info.name);
  return str("unknown operator '", op, "'", did_you_mean(op, names));
}

std::string problem_of_chain(const std::string& chain) {
  const std::vector<std::string> links = chain_links(chain);
  if (links.size() < 2) return str("chain '", chain, "' has one operator; expected two or more, as in Conv > Relu");
  for (const std::string& link : links) {
    if (link.empty()) return str("chain '", chain, "' has no operator beside a '>'");
    if (link == "*") continue;
    if (std::string problem = unknown_operator(link); !problem.empty()) return problem;
  }
  return "";
}

std::optional<std::regex> compiled(const std::string& pattern) {
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

// Depth-first over the readers: `path` has the nodes of the links before, of which the last is for link `at`.
void follow(const std::vector<std::string>& links, std::vector<const Node*>& path,
            std::vector<std::vector<const Node*>>& out) {
  const size_t at = path.size() - 1;
  if (links[at] != "*" && links[at] != path.back()->info().name) return;
  if (path.size() == links.size()) return out.push_back(path);
  const Node* last = nullptr;  // one that reads a value twice stands there twice
  for (const ir::Value* value : path.back()->outputs)
    for (const Node* reader : value ? value->users : std::vector<Node*>()) {
      if (std::exchange(last, reader) == reader) continue;
      path.push_back(reader);
      follow(links, path, out);
      path.pop_back();
    }
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) out.push_back(node->name);
  return out;
}

std::string operators_of(const Graph& graph) {
  std::set<std::string> names;
  for (const auto& node : graph.nodes()) names.insert(node->info().name);
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// Why it selects nothing.
std::string nothing_found(const Graph& graph, const NodeSelector& s) {
  const std::string none = str("no node of graph '", graph.name, "' ");
  if (!s.name.empty()) return str(none, "is named '", s.name, "'", did_you_mean(s.name, names_of(graph)));
  if (!s.regex.empty())
    return str(none, "has a name that the regular expression '", s.regex, "' matches from its first to its last letter",
               did_you_mean(s.regex, names_of(graph)));
  if (!s.op.empty()) return str(none, "is a ", s.op, "; its operators are ", operators_of(graph));
  return str(none, "begins the chain ", s.chain, "; its operators are ", operators_of(graph));
}

// Of a selector that is no chain.
class Match {
 public:
  explicit Match(const NodeSelector& selector) : selector_(selector), regex_(compiled(selector.regex)) {}

  bool operator()(const std::string& name, const std::string& op) const {
    if (!selector_.op.empty()) return op == selector_.op;
    if (!selector_.regex.empty()) return std::regex_match(name, *regex_);
    return !selector_.name.empty() && fnmatch(selector_.name.c_str(), name.c_str(), 0) == 0;
  }

 private:
  const NodeSelector& selector_;
  std::optional<std::regex> regex_;
};

std::unordered_set<const Node*> selected(const Graph& graph, const NodeSelector& s) {
  std::unordered_set<const Node*> out;
  if (!s.chain.empty()) {
    for (const std::vector<const Node*>& nodes : find_chains(graph, s.chain)) out.insert(nodes.begin(), nodes.end());
    return out;
  }
  const Match match(s);
  for (const auto& node : graph.nodes())
    if (match(node->name, node->info().name)) out.insert(node.get());
  return out;
}

bool selects_behind(const Graph& graph, const NodeSelector& s) {
  if (!graph.program || !s.chain.empty()) return false;
  const Match match(s);
  return std::ranges::any_of(graph.program->operations,
                             [&](const dense::Operation& operation) { return match(operation.name, operation.op); });
}

}  // namespace

void describe(schema::Section& s, NodeSelector& selector) {
  s.field("name", selector.name).help("Node names, with * and ?; an item that is plain text means this.");
  s.field("regex", selector.regex).help("Regular expression (ECMAScript) over whole node names.");
  s.field("op", selector.op).help("ONNX operator, as in Sigmoid.");
  s.field("chain", selector.chain)
      .help("Operators that read one another, as in `Conv > Sigmoid > Mul`; * is any operator. All nodes of it.");
}

std::string problem_of(const NodeSelector& s) {
  const int given = !s.name.empty() + !s.regex.empty() + !s.op.empty() + !s.chain.empty();
  if (given != 1) return str("takes items with exactly ", kForms);
  if (!s.op.empty()) return unknown_operator(s.op);
  if (!s.chain.empty()) return problem_of_chain(s.chain);
  if (!s.regex.empty() && !compiled(s.regex)) return str("'", s.regex, "' is no regular expression (ECMAScript)");
  return "";
}

bool selects(const NodeSelector& selector, const std::string& name, const std::string& op) {
  return Match(selector)(name, op);
}

NodeSelector node_called(const std::string& name) {
  NodeSelector selector;
  for (const char c : name) {
    if (std::string("*?[\\").find(c) != std::string::npos) selector.name += '\\';
    selector.name += c;
  }
  return selector;
}

NodeSelector parse_selector(const std::string& text) {
  NodeSelector out;
  const std::pair<const char*, std::string NodeSelector::*> kinds[] = {
      {"re:", &NodeSelector::regex}, {"op:", &NodeSelector::op}, {"chain:", &NodeSelector::chain}};
  for (const auto& [prefix, member] : kinds)
    if (text.starts_with(prefix)) return out.*member = text.substr(std::string(prefix).size()), out;
  out.name = text;
  return out;
}

std::vector<std::string> chain_links(const std::string& chain) {
  std::vector<std::string> out(1);
  for (const char c : chain) {
    if (c == '>')
      out.emplace_back();
    else if (c != ' ')
      out.back() += c;
  }
  return out;
}

std::vector<std::vector<const Node*>> find_chains(const Graph& graph, const std::string& chain) {
  const std::vector<std::string> links = chain_links(chain);
  std::vector<std::vector<const Node*>> out;
  for (const auto& node : graph.nodes()) {
    std::vector<const Node*> path = {node.get()};
    follow(links, path, out);
  }
  return out;
}

std::unordered_set<const Node*> select_nodes(const Graph& graph, const std::vector<NodeSelector>& selectors,
                                             const std::string& what) {
  std::unordered_set<const Node*> out;
  for (const NodeSelector& selector : selectors) {
    if (const std::string problem = problem_of(selector); !problem.empty()) fail_usage(what, ": ", problem);
    std::unordered_set<const Node*> nodes = selected(graph, selector);
    if (nodes.empty() && !selects_behind(graph, selector)) fail_usage(what, ": ", nothing_found(graph, selector));
    out.merge(nodes);
  }
  return out;
}

}  // namespace octet::quant
