// A plan with a program behind it.
#pragma once
#include "../dense/program_maker.h"
#include "engine/plan.h"

namespace octet::testing {

// Scores [6], which the plan copies, and what selecting_program() makes of them.
inline engine::Plan program_plan() {
  engine::Plan plan{.name = "selecting", .metadata = {{"stage", "test"}}, .isa = "scalar"};
  plan.buffers = {{.name = "scores", .shape = {6}}, {.name = "out", .shape = {6}}};
  plan.steps = {{.kind = "strided_copy",
                 .name = "copy",
                 .op = "Output",
                 .inputs = {0},
                 .outputs = {1},
                 .ints = {{"rank", 1}},
                 .lists = {{"dims", {6}}, {"in_strides", {1}}, {"out_strides", {1}}}}};
  plan.inputs = {0}, plan.outputs = {1};
  plan.program = std::make_shared<const dense::Program>(selecting_program());
  std::string bytes = dense::program_bytes(*plan.program);
  plan.program_bytes = {0, static_cast<int64_t>(bytes.size())};
  bytes.resize((bytes.size() + 63) / 64 * 64);
  plan.constants = engine::make_constant_blob(std::as_bytes(std::span(bytes)));
  engine::plan_memory(plan);
  return plan;
}

}  // namespace octet::testing
