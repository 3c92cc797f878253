// Engine files: whatever bytes come, the loader refuses them with a UserError, or the plan runs within its memory, on
// the instruction set that the input asks for and on the scalar one.
// An input that is no engine file itself is a list of changes to a good one, so that the fuzzer needs no corpus. Its
// first byte chooses file and instruction set, the second how the file is changed: single bytes (16-bit position, new
// byte), or values of the plan's JSON (plan_mutation.h). The checksums are always repaired.
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "../engine/conv_chain_plan.h"
#include "../engine/program_plan.h"
#include "../engine/wide_plan.h"
#include "base/error.h"
#include "engine/engine_file.h"
#include "engine/model_info.h"
#include "engine/plan_json.h"
#include "plan_mutation.h"
#include "run_plan.h"

namespace {

using octet::engine::Plan;

const Plan& seed_plan(uint8_t choice) {
  static const Plan plans[] = {octet::testing::small_plan(), octet::testing::WidePlan::make(),
                               octet::testing::conv_chain_plan(), octet::testing::program_plan()};
  return plans[choice % std::size(plans)];
}

std::string engine_bytes(const uint8_t* data, size_t size) {
  if (size >= 8 && std::memcmp(data, "OCTET", 5) == 0) return {reinterpret_cast<const char*>(data), size};
  if (size < 2) return {};
  const Plan& seed = seed_plan(data[0]);
  const std::span<const uint8_t> changes(data + 2, size - 2);
  if (data[1] % 4 != 0)
    return octet::engine::engine_file_bytes(octet::testing::changed_plan(octet::engine::plan_to_json(seed), changes),
                                            seed.constants->bytes(), octet::engine::kEngineFormatVersion);
  std::string bytes = octet::engine::engine_file_bytes(seed);
  for (size_t i = 0; i + 2 < changes.size(); i += 3) {
    // The header stays: it is repaired anyway.
    const size_t at = 64 + (changes[i] | changes[i + 1] << 8) % (bytes.size() - 64);
    bytes[at] = static_cast<char>(changes[i + 2]);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 18) return 0;
  std::string text = engine_bytes(data, size);
  const auto bytes = std::as_writable_bytes(std::span<char>(text));
  octet::engine::repair_checksum(bytes);
  static const std::vector<octet::Isa> isas = octet::supported_isas();
  try {
    const auto plan = octet::engine::parse_engine(bytes, "input", {.arena_bytes = 1 << 26});
    try {
      octet::engine::read_model_info(plan->metadata);
    } catch (const octet::UserError&) {
    }
    if (!octet::testing::is_tiny(*plan)) return 0;
    octet::testing::run_plan(plan, octet::Isa::kScalar, 1);
    if (size > 1) octet::testing::run_plan(plan, isas[data[0] / 3 % isas.size()], 1 + data[1] / 4 % 2);
  } catch (const octet::UserError&) {
  }
  return 0;
}
