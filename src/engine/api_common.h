// What the classes of the installed C++ interface share.
#pragma once
#include <octet/engine.h>

#include "dense/program.h"
#include "engine/api_error.h"
#include "engine/executor.h"
#include "engine/throughput.h"

namespace octet {

// Throws Error where they are not as many.
void check_count(size_t given, size_t expected, const char* what);

DataType public_type(dense::Type type);

// In the order of the plan's steps, without times.
std::vector<LayerReport> layer_reports(const engine::Plan& plan, Isa isa);

struct Throughput::Impl {
  engine::ThroughputPool pool;
};

}  // namespace octet
