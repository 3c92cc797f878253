#include "engine/engine_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "engine/conv_chain_plan.h"
#include "engine/engine_test_util.h"

namespace octet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::shared_ptr<const engine::Plan> parse(const std::string& bytes) {
  return engine::parse_engine(std::as_bytes(std::span<const char>(bytes)), "file");
}

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) / ("octet_engine_file_test_" + name);
}

TEST(EngineFile, RoundTripThroughMemoryAndMap) {
  const auto plan = std::make_shared<const engine::Plan>(small_plan());
  const std::vector<float> expected = run(plan);
  const auto path = temporary("round_trip.octet");
  engine::save_engine(*plan, path);
  const auto mapped = engine::load_engine(path);
  EXPECT_EQ(run(mapped), expected);
  EXPECT_EQ(mapped->metadata, plan->metadata);
  EXPECT_EQ(mapped->arena_bytes, plan->arena_bytes);
  EXPECT_EQ(run(parse(read_file(path))), expected);
  // Saved again it is the same file: nothing is lost or reordered.
  EXPECT_EQ(engine::engine_file_bytes(*mapped), read_file(path));
  std::filesystem::remove(path);
}

TEST(EngineFile, ConstantsAreUsedInPlace) {
  const auto path = temporary("aligned.octet");
  engine::save_engine(small_plan(), path);
  const auto plan = engine::load_engine(path);
  for (const engine::Step& s : plan->steps)
    for (const auto& [key, ref] : s.constants)
      EXPECT_EQ(reinterpret_cast<uintptr_t>(plan->constant_bytes(ref, 1).data()) % 64, 0u) << key;
  std::filesystem::remove(path);
}

TEST(EngineFile, EveryTruncationIsRefused) {
  const std::string whole = engine::engine_file_bytes(small_plan());
  for (size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 97)
    EXPECT_NE(error_of([&] { parse(whole.substr(0, size)); }), "") << size;
  EXPECT_THAT(error_of([&] { parse(whole.substr(0, 40)); }), AllOf(StartsWith("file: truncated"), HasSubstr("header")));
  EXPECT_THAT(error_of([&] { parse(whole.substr(0, whole.size() - 1)); }), StartsWith("file: truncated"));
  EXPECT_THAT(error_of([&] { parse(whole + "x"); }), StartsWith("file: damaged"));
}

TEST(EngineFile, EveryFlippedBitIsRefused) {
  const std::string whole = engine::engine_file_bytes(small_plan());
  for (size_t i = 0; i < whole.size(); i += i < 64 ? 1 : 13) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
    EXPECT_NE(error_of([&] { parse(bytes); }), "") << "byte " << i;
  }
}

TEST(EngineFile, RefusalsSayWhatIsWrong) {
  std::string bytes = engine::engine_file_bytes(small_plan());
  EXPECT_THAT(error_of([] { parse("not an engine at all"); }), HasSubstr("not an Octet engine file"));
  std::string newer = bytes;
  newer[8] = static_cast<char>(engine::kEngineFormatVersion + 1);
  EXPECT_THAT(error_of([&] { parse(newer); }), AllOf(HasSubstr("newer Octet (engine format"), HasSubstr("compile")));
  newer[8] = 1;
  EXPECT_THAT(error_of([&] { parse(newer); }), HasSubstr("older Octet (engine format 1"));
  const auto flipped = [&](size_t at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    return error_of([&] { parse(damaged); });
  };
  EXPECT_THAT(flipped(0), HasSubstr("not an Octet engine file"));
  for (size_t at = 12; at < 64; ++at) EXPECT_THAT(flipped(at), HasSubstr("the checksum of the header")) << at;
  EXPECT_THAT(flipped(100), HasSubstr("the checksum of the plan"));
  EXPECT_THAT(flipped(bytes.size() - 1), HasSubstr("the checksum of the weights"));
  EXPECT_THAT(error_of([] { engine::load_engine("/nonexistent/a.octet"); }), HasSubstr("/nonexistent/a.octet"));
}

// Text of the plan changed and the checksum repaired: what a hostile file would do.
std::string error_after(const std::string& from, const std::string& to) {
  std::string bytes = engine::engine_file_bytes(small_plan());
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_LE(to.size(), from.size());
  bytes.replace(at, from.size(), to + std::string(from.size() - to.size(), ' '));
  engine::repair_checksum(std::as_writable_bytes(std::span<char>(bytes)));
  return error_of([&] { parse(bytes); });
}

TEST(EngineFile, EveryPieceOfLargeConstantsIsChecked) {
  engine::Plan plan = small_plan();
  const auto few = plan.constants->bytes();
  std::vector<std::byte> many(few.begin(), few.end());
  many.resize(5 << 20, std::byte{7});
  plan.constants = engine::make_constant_blob(many);
  const std::string bytes = engine::engine_file_bytes(plan);
  EXPECT_EQ(run(parse(bytes)), run(std::make_shared<const engine::Plan>(small_plan())));
  for (size_t back = 1; back < 5 << 20; back += (1 << 20) - 1) {
    std::string damaged = bytes;
    damaged[bytes.size() - back] ^= 4;
    EXPECT_THAT(error_of([&] { parse(damaged); }), HasSubstr("the checksum of the weights")) << back;
  }
}

TEST(EngineFile, GivesMemoryBackAndReadsItAgain) {
  const auto path = temporary("release.octet");
  engine::save_engine(small_plan(), path);
  const auto plan = engine::load_engine(path);
  const std::vector<float> expected = run(plan);
  plan->constants->release(plan->constants->bytes());
  EXPECT_EQ(run(plan), expected);
  std::filesystem::remove(path);
}

// A file made on another machine names tactics that this one, or this instruction set, does not have.
TEST(EngineFile, AForeignTacticIsReplaced) {
  std::vector<float> expected;
  for (const char* tactic : {"", "direct amx_int8/rows", "direct avx2", "winograd4x4 avx512_vnni/channels",
                             "magic sve2", "direct", "/", " "}) {
    const auto plan = parse(engine::engine_file_bytes(conv_chain_plan(tactic)));
    for (const engine::Step& s : plan->steps) {
      if (s.kind == "conv") {
        EXPECT_EQ(s.tactic, tactic);
      }
    }
    for (Isa isa : supported_isas()) {
      const std::vector<float> y = run(plan, {.threads = 2, .isa = isa});
      if (expected.empty()) expected = y;
      EXPECT_EQ(y, expected) << "'" << tactic << "' on " << isa_name(isa);
    }
  }
  EXPECT_GT(std::set<float>(expected.begin(), expected.end()).size(), 10u);
}

TEST(EngineFile, HostilePlansAreRefused) {
  EXPECT_THAT(error_after("\"kernel_h\": 3", "\"kernel_h\": 9"), HasSubstr("halo"));
  EXPECT_THAT(error_after("\"pad_left\": 1", "\"pad_left\": 7"), HasSubstr("halo"));
  EXPECT_THAT(error_after("\"lo\": 128", "\"lo\": 999"), HasSubstr("outside 0..255"));
  EXPECT_THAT(error_after("\"kind\": \"max_pool\"", "\"kind\": \"min_pool\""), HasSubstr("no step kind 'min_pool'"));
  EXPECT_THAT(error_after("\"weights\": [", "\"weight_\": ["), HasSubstr("'weights' is missing"));
  EXPECT_THAT(error_after("\"scale\": 0.009999999776482582", "\"scale\": -1"), HasSubstr("not positive"));
  EXPECT_THAT(error_after("\"layout\": \"codes\"", "\"layout\": \"cod\""), HasSubstr("unknown layout"));
  EXPECT_THAT(error_after("\"name\": \"small\"", "\"name\": {"), HasSubstr("not valid JSON"));
}

TEST(EngineFile, NumbersOfTheFileDoNotDriveAllocation) {
  engine::Plan plan = small_plan();
  plan.buffers[2].shape = {1, 20, 1 << 16, 1 << 14};
  EXPECT_THAT(error_of([&] { engine::validate(plan); }), HasSubstr("outside the arena"));
  plan = small_plan();
  plan.arena_bytes = int64_t{1} << 60;
  EXPECT_THAT(error_of([&] { engine::validate(plan); }), HasSubstr("limit"));
  plan = small_plan();
  plan.buffers[0].shape = {int64_t{1} << 39, int64_t{1} << 39, 1, 1};
  EXPECT_THAT(error_of([&] { engine::validate(plan); }), HasSubstr("too large"));
}

TEST(EngineFile, DiskFullLeavesNothing) {
  EXPECT_NE(error_of([] { engine::save_engine(small_plan(), "/proc/octet/x.octet"); }), "");
}

}  // namespace
}  // namespace octet::testing
