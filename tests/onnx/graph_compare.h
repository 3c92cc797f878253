// Whether two graphs are the same network: names, types, attributes and constants; not addresses.
#pragma once
#include <algorithm>
#include <string>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/print.h"

namespace octet::onnx {

// The first difference in words; empty when there is none. The graphs' opsets are not compared.
inline std::string first_difference(const ir::Graph& a, const ir::Graph& b) {
  if (a.name != b.name) return str("names ", a.name, " and ", b.name);
  if (a.metadata != b.metadata) return "metadata";
  const auto values_differ = [](const std::vector<ir::Value*>& x, const std::vector<ir::Value*>& y) -> std::string {
    if (x.size() != y.size()) return str(x.size(), " and ", y.size());
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i]->name != y[i]->name || !(x[i]->type == y[i]->type))
        return str(x[i]->name, " ", ir::type_string(x[i]->type), " and ", y[i]->name, " ", ir::type_string(y[i]->type));
    return "";
  };
  if (const auto d = values_differ(a.inputs(), b.inputs()); !d.empty()) return "inputs: " + d;
  if (const auto d = values_differ(a.outputs(), b.outputs()); !d.empty()) return "outputs: " + d;
  if (a.nodes().size() != b.nodes().size()) return str(a.nodes().size(), " and ", b.nodes().size(), " nodes");
  for (auto x = a.nodes().begin(), y = b.nodes().begin(); x != a.nodes().end(); ++x, ++y)
    if (ir::to_text(**x) != ir::to_text(**y)) return ir::to_text(**x) + "\n" + ir::to_text(**y);
  if (a.constants().size() != b.constants().size())
    return str(a.constants().size(), " and ", b.constants().size(), " constants");
  for (const ir::Value* x : a.constants()) {
    const ir::Value* y = b.find_value(x->name);
    if (!y || !y->is_constant()) return str("no constant ", x->name);
    if (x->trainable != y->trainable) return str("trainable flag of ", x->name);
    if (!(x->type == y->type)) return str(x->name, ": ", ir::type_string(x->type), " and ", ir::type_string(y->type));
    const auto p = x->constant->bytes(), q = y->constant->bytes();
    if (!std::equal(p.begin(), p.end(), q.begin(), q.end())) return str("content of ", x->name);
  }
  return "";
}

}  // namespace octet::onnx
