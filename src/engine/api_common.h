// What the classes of the installed C++ interface share.
#pragma once
#include <octet/engine.h>

#include "base/error.h"
#include "dense/program.h"
#include "engine/executor.h"
#include "engine/throughput.h"

namespace octet {

// The public interface has an error type of its own, so that its header needs nothing else of Octet.
template <typename Work>
auto translated(Work work) {
  try {
    return work();
  } catch (const UserError& e) {
    throw Error(e.what());
  }
}

// Throws Error where they are not as many.
void check_count(size_t given, size_t expected, const char* what);

DataType public_type(dense::Type type);

// In the order of the plan's steps, without times.
std::vector<LayerReport> layer_reports(const engine::Plan& plan, Isa isa);

struct Throughput::Impl {
  engine::ThroughputPool pool;
};

}  // namespace octet
