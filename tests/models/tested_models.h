// Which networks of the zoo tests build, and what they count in them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/zoo.h"
#include "support/sanitized.h"

namespace octet::models {

// Sanitizers make large networks slow, and these have nothing that others do not have.
inline std::vector<ModelInfo> tested_models() {
  std::vector<ModelInfo> out = all_models();
  if (testing::kSanitized) std::erase_if(out, [](const ModelInfo& info) { return info.parameters > 30'000'000; });
  return out;
}

inline int64_t count(const ir::Graph& graph, ir::OpKind kind) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const auto& n) { return n->kind == kind; });
}

}  // namespace octet::models
