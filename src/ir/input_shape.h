// Shapes that a user says for inputs whose sizes a file leaves open: --input-shape images:1x3x320x320.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace octet::ir {

class Graph;

struct InputShape {
  std::string name;  // of the input; empty: of the only one
  Shape shape;       // kDynamic: as the file has it
};

// "1x3x320x320", "1,3,320,320", "images:1x3x320x320" (what is before the last colon is the name), "Nx3x320x320". A size
// is 1 to 65,536, or N, ? or -1 for that of the file, open or not. UserError (exit 2) for anything else.
InputShape parse_input_shape(std::string_view text);
std::vector<InputShape> parse_input_shapes(const std::vector<std::string>& texts);

// "images:1x3x320x320", as parse_input_shape() reads it.
std::string input_shape_text(const InputShape& shape);

// What a user may type for the inputs of `graph` with open sizes: "--input-shape Nx3x224x224", with names where the
// graph has several inputs. Only an example: nothing takes these sizes unless they are said. Empty: no size is open.
std::string advised_input_shapes(const Graph& graph);
std::string advised_input_shape(const std::string& input, const Shape& shape, bool with_name);

}  // namespace octet::ir
