// Programs behind plans: whatever bytes come, the reader refuses them with a UserError, or the program runs within its
// memory and stays the same when it is written again.
// The first byte chooses: the rest is a program, or changes to one of four good ones (16-bit position, new byte).
#include <cstdint>
#include <cstring>
#include <string>

#include "../dense/code_programs.h"
#include "base/error.h"
#include "engine/prepared_program.h"

namespace {

std::string bytes_of(const uint8_t* data, size_t size) {
  if (data[0] % 8 == 0) return {reinterpret_cast<const char*>(data + 1), size - 1};
  static const std::string selecting = octet::dense::program_bytes(octet::testing::selecting_program());
  static const std::string layers = octet::dense::program_bytes(octet::testing::layers_program());
  static const std::string images = octet::dense::program_bytes(octet::testing::images_program());
  static const std::string codes = octet::dense::program_bytes(octet::testing::codes_program());
  std::string bytes = data[0] % 8 == 7 ? codes : data[0] % 4 == 1 ? layers : data[0] % 4 == 2 ? images : selecting;
  for (size_t i = 1; i + 2 < size; i += 3)
    bytes[(data[i] | data[i + 1] << 8) % bytes.size()] = static_cast<char>(data[i + 2]);
  return bytes;
}

octet::dense::Tensor some(octet::dense::Type type, octet::dense::Memory& memory) {
  octet::dense::Tensor out = memory.make(type, {2, 3});
  std::memset(out.data(), 0, out.bytes().size());
  if (type == octet::dense::Type::kFloat)
    for (int i = 0; i < 6; ++i) out.mutable_values<float>()[static_cast<size_t>(i)] = 0.25f * static_cast<float>(i);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 1 << 16) return 0;
  const std::string bytes = bytes_of(data, size);
  try {
    const octet::dense::Program program = octet::dense::parse_program(std::as_bytes(std::span(bytes)));
    const std::string again = octet::dense::program_bytes(program);
    OCTET_CHECK(octet::dense::program_bytes(octet::dense::parse_program(std::as_bytes(std::span(again)))) == again);
    octet::dense::validate(program);
    octet::dense::Memory memory;
    std::vector<octet::dense::Tensor> inputs;
    for (const octet::dense::Input& input : program.inputs) inputs.push_back(some(input.type, memory));
    octet::dense::run(program, inputs, {.memory_bytes = 1 << 16, .iterations = 100});
    const octet::engine::PreparedProgram prepared(program, octet::Isa::kScalar);
    prepared.run(inputs, {.memory_bytes = 1 << 16, .iterations = 100});
  } catch (const octet::UserError&) {
  }
  return 0;
}
