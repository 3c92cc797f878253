// What `octet compile` does to its copy of the graph before the lowering, in order; the other stages:
// passes/pipelines.h.
#pragma once
#include <vector>

#include "passes/pipeline.h"

namespace octet::lower {

// They require static sizes and types. None changes a result.
std::vector<passes::Pass> compile_passes();

}  // namespace octet::lower
