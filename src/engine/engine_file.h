// The engine file NAME.octet, little endian:
//   64-byte header: magic "OCTET\0\0\1", format version, sizes of the two sections, checksums of each and of the header
//   plan: JSON text (any editor shows it), padded with spaces to a multiple of 64 bytes
//   constants: packed weights and tables, every entry 64-byte aligned, used in place when the file is mapped; one of
//   them, where the plan says so, is the program behind the plan (dense/program.h)
// The weight layout is the same for every instruction set, so any CPU can run any engine file.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "engine/plan.h"

namespace octet::engine {

// Files are of the oldest format that can say what they say: 4 has a program or
// functions on lines (kernels/code_function.h), 3 has none of these. Both are read.
inline constexpr uint32_t kEngineFormatVersion = 4, kPlainFormatVersion = 3;

// The bytes of the file.
std::string engine_file_bytes(const Plan& plan);
// The same with any text as the plan section (for fuzzers and tests).
std::string engine_file_bytes(std::string plan_text, std::span<const std::byte> constants,
                              uint32_t version = kPlainFormatVersion);
// Written whole or not at all. UserError with the reason when that fails.
void save_engine(const Plan& plan, const std::filesystem::path& path);

// Maps the file and validates the plan. UserError naming the file: it is no engine, truncated, damaged, from a newer
// version, or its plan does not hold together.
std::shared_ptr<const Plan> load_engine(const std::filesystem::path& path, const PlanLimits& limits = {});
// The same from bytes in memory (copied); `name` is for messages.
std::shared_ptr<const Plan> parse_engine(std::span<const std::byte> bytes, const std::string& name,
                                         const PlanLimits& limits = {});

// Makes the header's sizes and checksums fit the bytes behind it, as far as there is a header (for fuzzers and tests,
// which must get past the checksum).
void repair_checksum(std::span<std::byte> bytes);

}  // namespace octet::engine
