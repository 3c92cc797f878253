// Nodes that a user names: by name, by operator, or by a chain of operators.
#pragma once
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "schema/schema.h"

namespace octet::quant {

// Exactly one is given.
struct NodeSelector {
  std::string name;   // a glob over node names ("head/*", as fnmatch with * also matching /)
  std::string regex;  // ECMAScript, over the whole of a node's name
  std::string op;     // an ONNX operator
  // Operators of which each reads the one before, "Conv > Sigmoid > Mul": all nodes of such a chain, whatever else they
  // read. * stands for any operator.
  std::string chain;
  bool operator==(const NodeSelector&) const = default;
};
void describe(schema::Section& s, NodeSelector& selector);

// What is wrong with a selector, whatever the graph; empty: nothing.
std::string problem_of(const NodeSelector& selector);

// One in a word of the command line: a glob, or "re:REGEX", "op:OPERATOR", "chain:OPERATOR > OPERATOR".
NodeSelector parse_selector(const std::string& text);

// Whether it selects, by name, regex or op, a node of this name and operator. Precondition: no problem_of() it.
bool selects(const NodeSelector& selector, const std::string& name, const std::string& op);

// The node with this name and no other.
NodeSelector node_called(const std::string& name);

// The nodes that one of them selects. `what` begins the messages, "quantization exclude". UserError (exit 2) for a
// selector that is none, or that selects no node, nor an operation of the graph's program (with the nearest name).
std::unordered_set<const ir::Node*> select_nodes(const ir::Graph& graph, const std::vector<NodeSelector>& selectors,
                                                 const std::string& what);

// The operators between the signs of a chain, "Conv > Relu"; an empty one where there is none.
std::vector<std::string> chain_links(const std::string& chain);
// Every chain of nodes that it describes, in the order of their first nodes; each as long as the chain.
std::vector<std::vector<const ir::Node*>> find_chains(const ir::Graph& graph, const std::string& chain);

}  // namespace octet::quant
