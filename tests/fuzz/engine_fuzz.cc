// Engine files: whatever bytes come, the loader refuses them with a UserError, or the plan runs within its memory.
// An input that is no engine file itself is a list of changes to a good one: (16-bit position, new byte) each. So the
// fuzzer gets behind the JSON without a corpus.
#include <cstdint>
#include <cstring>
#include <vector>

#include "../engine/wide_plan.h"
#include "base/error.h"
#include "engine/engine_file.h"
#include "engine/executor.h"

namespace {

// What keeps one input fast; plans beyond it are only parsed and checked.
constexpr int64_t kMaxArena = 1 << 20, kMaxElements = 1 << 16, kMaxSteps = 64;

bool is_tiny(const octet::engine::Plan& plan) {
  if (plan.steps.size() > kMaxSteps || plan.arena_bytes > kMaxArena) return false;
  for (const octet::engine::Buffer& b : plan.buffers)
    if (b.elements() > kMaxElements) return false;
  // Pooling windows and matrix products may be far larger than their buffers.
  for (const octet::engine::Step& s : plan.steps)
    for (const auto& [key, value] : s.ints)
      if (value > 4096) return false;
  return true;
}

void run(std::shared_ptr<const octet::engine::Plan> plan) {
  octet::engine::Executor executor(plan, {.threads = 1, .isa = octet::Isa::kScalar});
  std::vector<std::vector<float>> tensors;
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  tensors.reserve(plan->inputs.size() + plan->outputs.size());
  for (int id : plan->inputs) {
    tensors.emplace_back(plan->buffers[id].elements(), 0.5f);
    inputs.push_back(tensors.back().data());
  }
  for (int id : plan->outputs) {
    tensors.emplace_back(plan->buffers[id].elements());
    outputs.push_back(tensors.back().data());
  }
  executor.run(inputs.data(), outputs.data());
}

std::vector<std::byte> engine_bytes(const uint8_t* data, size_t size) {
  if (size >= 8 && std::memcmp(data, "OCTET", 5) == 0) {
    std::vector<std::byte> bytes(size);
    std::memcpy(bytes.data(), data, size);
    return bytes;
  }
  static const std::string seeds[] = {octet::engine::engine_file_bytes(octet::testing::small_plan()),
                                      octet::engine::engine_file_bytes(octet::testing::WidePlan::make())};
  const std::string& good = seeds[size % 2];
  std::vector<std::byte> bytes(good.size());
  std::memcpy(bytes.data(), good.data(), good.size());
  for (size_t i = 0; i + 2 < size; i += 3) {
    // The header stays: it is repaired anyway.
    const size_t at = 64 + (data[i] | data[i + 1] << 8) % (bytes.size() - 64);
    bytes[at] = static_cast<std::byte>(data[i + 2]);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 18) return 0;
  std::vector<std::byte> bytes = engine_bytes(data, size);
  octet::engine::repair_checksum(bytes);
  try {
    const auto plan = octet::engine::parse_engine(bytes, "input", {.arena_bytes = 1 << 26});
    if (is_tiny(*plan)) run(plan);
  } catch (const octet::UserError&) {
  }
  return 0;
}
