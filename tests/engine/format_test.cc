// Engine files of formats that docs/compatibility.md promises to read, stored in tests/engine/files as they were
// written then (engine_write_small), with the outputs that they gave (engine_write_outputs): they still give these
// bits.
#include <gtest/gtest.h>
#include <octet/engine.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/engine_file.h"

namespace octet::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(OCTET_SOURCE_DIR) / "tests/engine/files";

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The numbers of write_outputs.cc.
std::vector<float> numbers(int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  uint32_t state = 1;
  for (float& v : out) v = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2.0f;
  return out;
}

TEST(StoredFormats, GiveTheBitsThatTheyGaveThen) {
  int read = 0;
  for (uint32_t format = 3; format <= engine::kEngineFormatVersion; ++format) {
    const fs::path file = kFolder / ("format_" + std::to_string(format) + ".octet");
    if (!fs::exists(file)) continue;
    uint32_t stored = 0;
    std::memcpy(&stored, bytes_of(file).data() + 8, sizeof stored);
    EXPECT_EQ(stored, format) << file << " is of another format than its name";
    const Engine engine = Engine::load(file.string());
    EXPECT_EQ(engine.model_info().classes, (std::vector<std::string>{"cat", "dog"}));
    const std::string expected = bytes_of(fs::path(file).replace_extension(".f32"));
    for (const char* isa : {"scalar", ""}) {
      std::vector<float> y;
      engine.create_context({.threads = 1, .isa = isa}).run(numbers(engine.inputs()[0].size()), y);
      ASSERT_EQ(y.size() * sizeof(float), expected.size());
      EXPECT_EQ(std::memcmp(y.data(), expected.data(), expected.size()), 0) << file;
    }
    ++read;
  }
  EXPECT_GT(read, 0);
}

TEST(StoredFormats, ThereIsOneOfTheFormatBeforeThis) {
  const uint32_t before = std::max<uint32_t>(3, engine::kEngineFormatVersion - 1);
  EXPECT_TRUE(fs::exists(kFolder / ("format_" + std::to_string(before) + ".octet")))
      << "store a file of the last format before a new one replaces it";
}

}  // namespace
}  // namespace octet::testing
