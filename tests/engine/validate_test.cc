// Every number of a plan set to hostile values: refused, or harmless when run (the sanitizer builds watch).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/engine_file.h"
#include "engine/step_kinds.h"
#include "engine/wide_plan.h"

namespace octet::testing {
namespace {

void run_all(const engine::Plan& plan, int threads = 1) {
  const auto shared = std::make_shared<const engine::Plan>(plan);
  engine::Executor executor(shared, {.threads = threads, .isa = Isa::kScalar});
  std::vector<std::vector<float>> tensors;
  std::vector<const float*> in;
  std::vector<float*> out;
  tensors.reserve(plan.inputs.size() + plan.outputs.size());
  for (int id : plan.inputs) in.push_back(tensors.emplace_back(ramp(plan.buffers[id].elements())).data());
  for (int id : plan.outputs) out.push_back(tensors.emplace_back(plan.buffers[id].elements()).data());
  executor.run(in.data(), out.data());
}

TEST(Validate, TheWidePlanHasEveryKindOfStep) {
  const engine::Plan plan = WidePlan::make();
  ASSERT_EQ(error_of([&] { engine::validate(plan); }), "");
  std::set<std::string> kinds;
  for (const engine::Step& s : plan.steps) kinds.insert(s.kind);
  for (const auto table : {engine::int8_step_kinds(), engine::float_step_kinds()})
    for (const engine::StepKind& kind : table) EXPECT_EQ(kinds.count(kind.name), 1u) << kind.name;
  run_all(plan);
  run_all(plan, 3);
  // It survives the file, too.
  const std::string bytes = engine::engine_file_bytes(plan);
  run_all(*engine::parse_engine(std::as_bytes(std::span<const char>(bytes)), "file"));
}

// Sets *number to hostile values one after the other; puts the right one back.
template <typename Number>
void disturb(engine::Plan& plan, Number* number, int* refused, int* accepted) {
  constexpr int64_t kHostile[] = {
      -1, 0, 1, 2, 3, 4, 7, 16, 255, 256, 1000, 65535, int64_t{1} << 31, int64_t{1} << 40, INT64_MAX, INT64_MIN};
  const Number right = *number;
  for (int64_t value : kHostile) {
    *number = static_cast<Number>(value);
    if (!error_of([&] { engine::validate(plan, {.arena_bytes = 1 << 20}); }).empty()) {
      ++*refused;
      continue;
    }
    ++*accepted;
    run_all(plan);
  }
  *number = right;
}

TEST(Validate, HostileNumbersOfSteps) {
  engine::Plan plan = WidePlan::make();
  int refused = 0, accepted = 0;
  for (engine::Step& s : plan.steps) {
    SCOPED_TRACE(s.kind);
    for (auto& [key, value] : s.ints) disturb(plan, &value, &refused, &accepted);
    for (auto& [key, list] : s.lists)
      for (int64_t& value : list) disturb(plan, &value, &refused, &accepted);
    for (auto& [key, ref] : s.constants) {
      disturb(plan, &ref.offset, &refused, &accepted);
      disturb(plan, &ref.bytes, &refused, &accepted);
    }
    for (auto* list : {&s.inputs, &s.outputs})
      for (int& id : *list) disturb(plan, &id, &refused, &accepted);
  }
  EXPECT_GT(refused, 2000);
  EXPECT_GT(accepted, 300);
}

TEST(Validate, HostileNumbersOfBuffers) {
  engine::Plan plan = WidePlan::make();
  int refused = 0, accepted = 0;
  for (engine::Buffer& b : plan.buffers) {
    SCOPED_TRACE(b.name);
    for (int64_t& d : b.shape) disturb(plan, &d, &refused, &accepted);
    disturb(plan, &b.offset, &refused, &accepted);
    disturb(plan, &b.alias_of, &refused, &accepted);
    disturb(plan, &b.channel_offset, &refused, &accepted);
    for (int64_t* part : {&b.rows.first, &b.rows.step, &b.columns.first, &b.columns.step})
      disturb(plan, part, &refused, &accepted);
    disturb(plan, &b.zero_point, &refused, &accepted);
    disturb(plan, &b.code_offset, &refused, &accepted);
    for (int64_t* h : {&b.halo.top, &b.halo.bottom, &b.halo.left, &b.halo.right}) disturb(plan, h, &refused, &accepted);
  }
  EXPECT_GT(refused, 1500);
}

}  // namespace
}  // namespace octet::testing
