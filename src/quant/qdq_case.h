// Quantizers where a user's pattern wants them, beside the rules and against them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::quant {

// Input `input` of `node` is read quantized, or (quantize = false) as it is, whatever the rules say of it. Input 1 of a
// weighted node are its weights.
struct QdqInput {
  const ir::Node* node = nullptr;
  size_t input = 0;
  bool quantize = true;
};

// A pattern and where its quantizers go. `find` is called on the prepared float graph: batch norms are folded, Clip and
// Relu are in one form (passes::preparation_passes).
struct QdqCase {
  std::string name;  // for messages
  std::function<std::vector<QdqInput>(const ir::Graph&)> find;
};

// An input of one operator of a chain.
struct LinkInput {
  size_t link = 0;  // which of the chain's operators, from 0
  size_t input = 0;
  bool quantize = true;
};

// The case of a chain of operators, each of which reads the one before, as quant.exclude knows it: "Conv > Sigmoid >
// Mul", * for any operator. The inputs are those of every such chain of a graph; one that has no such input is left
// out. UserError (exit 2) for what is no chain, and for a link beyond its end.
QdqCase case_of_chain(std::string name, const std::string& chain, std::vector<LinkInput> inputs);

}  // namespace octet::quant
