// A network from outside, whatever it is stored as: what tasks look at to see whether it is one of theirs.
#pragma once
#include <string>
#include <vector>

#include "data/network_input.h"
#include "ir/graph.h"

namespace octet::tasks {

struct Port {
  std::string name;
  ir::TensorType type;
};

struct Signature {
  std::vector<Port> inputs, outputs;
};

Signature signature_of(const ir::Graph& network);  // requires types

// How the only input takes images. UserError (exit 2) naming input and shape where it takes none.
data::NetworkInput image_input(const Signature& network);

}  // namespace octet::tasks
