// Errors that name the node they are about.
#pragma once
#include <string>

#include "base/error.h"

namespace octet::onnx {

// Runs `f`; its UserErrors are told with the node in front.
template <typename F>
auto at_node(const std::string& node, F f) {
  try {
    return f();
  } catch (const UserError& e) {
    const std::string what = e.what();
    if (what.rfind("node '", 0) == 0 || what.rfind("the node (", 0) == 0) throw;
    fail(node, ": ", what);
  }
}

}  // namespace octet::onnx
