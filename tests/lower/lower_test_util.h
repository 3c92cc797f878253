// Compiles a graph, runs it and compares every tensor with the reference evaluator.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "lower/lower.h"
#include "support/net_test_util.h"

namespace octet::testing {

struct Run {
  std::map<std::string, Array> outputs;
  std::vector<engine::TensorDump> dumps;
  std::vector<engine::BandedSteps> banded_steps;
};

inline Run run_plan(std::shared_ptr<const engine::Plan> plan, const std::map<std::string, Array>& inputs, Isa isa,
                    int threads, std::optional<engine::RowBandOptions> row_bands = std::nullopt) {
  engine::Executor executor(plan, {.threads = threads, .isa = isa, .row_bands = row_bands});
  std::vector<const float*> in;
  std::vector<std::vector<float>> out;
  std::vector<float*> out_pointers;
  for (int id : plan->inputs) in.push_back(inputs.at(plan->buffers[id].name).data.data());
  for (int id : plan->outputs) out.emplace_back(plan->buffers[id].elements(), -12345.0f);
  for (auto& o : out) out_pointers.push_back(o.data());
  Run run{.dumps = executor.run_and_dump(in.data(), out_pointers.data())};
  // The ordinary way must give the same.
  const auto first = out;
  for (auto& o : out) std::fill(o.begin(), o.end(), -54321.0f);
  executor.run(in.data(), out_pointers.data());
  EXPECT_EQ(first, out) << "run and run_and_dump differ";
  run.banded_steps = executor.banded_steps();
  for (size_t i = 0; i < out.size(); ++i) {
    const engine::Buffer& b = plan->buffers[plan->outputs[i]];
    run.outputs[b.name] = {b.shape, out[i]};
  }
  return run;
}

inline std::shared_ptr<const engine::Plan> compile(const ir::Graph& graph, int64_t batch = 1) {
  return std::make_shared<const engine::Plan>(lower::lower(graph, {.batch = batch}));
}

// Kinds of all steps, in order: "quantize conv conv dequantize".
inline std::string step_kinds(const engine::Plan& plan) {
  std::string out;
  for (const engine::Step& s : plan.steps) out += (out.empty() ? "" : " ") + s.kind;
  return out;
}

struct Comparison {
  int64_t tensors = 0, codes = 0, off_by_one = 0, worse = 0;
  double worst_float = 0;  // largest |difference| / largest |value| over float tensors
};

// Codes of a quantized tensor are compared with those that the reference's numbers stand for.
inline Comparison compare(const std::vector<engine::TensorDump>& dumps, const std::map<std::string, Array>& expected) {
  Comparison c;
  std::map<std::string, const engine::TensorDump*> codes;
  for (const engine::TensorDump& d : dumps)
    if (d.is_codes) codes[d.name] = &d;
  for (const engine::TensorDump& d : dumps) {
    if (const auto q = codes.find(d.name); q != codes.end() && !d.is_codes) {
      // The floats of a quantized tensor are made from its codes and nothing else.
      for (size_t i = 0; i < d.values.size(); ++i)
        EXPECT_EQ(d.values[i], static_cast<float>(q->second->codes[i] - q->second->zero_point) * q->second->scale);
      continue;
    }
    const auto found = expected.find(d.name);
    if (found == expected.end()) continue;
    const Array& want = found->second;
    EXPECT_EQ(d.shape, want.shape) << d.name;
    ++c.tensors;
    if (!d.is_codes) {
      double scale = 1e-6, difference = 0;
      for (size_t i = 0; i < d.values.size(); ++i) {
        scale = std::max<double>(scale, std::abs(want.data[i]));
        difference = std::max<double>(difference, std::abs(d.values[i] - want.data[i]));
      }
      c.worst_float = std::max(c.worst_float, difference / scale);
      continue;
    }
    for (size_t i = 0; i < d.codes.size(); ++i) {
      const int64_t code = std::lround(want.data[i] / d.scale) + d.zero_point;
      const int64_t off = std::abs(code - d.codes[i]);
      ++c.codes;
      c.off_by_one += off == 1;
      c.worse += off > 1;
    }
  }
  return c;
}

// Compiles, runs on every instruction set with 1 to 3 threads (bit-equal), and compares with the reference. `plan` gets
// the compiled network.
struct CheckOptions {
  // Float tensors, relative to the largest value. The bias is rounded to units of s_x * s_w, so a sum that spans about
  // 127 * 127 units may be off by half of one; the small sums of these nets span a tenth of that.
  double float_tolerance = 1e-4;
  double off_by_one = 0.005;  // allowed share of codes that differ by one step (ties and what follows from them)
  bool bit_equal = true;      // false: the graph has float arithmetic that instruction sets sum differently
  float low = -1, high = 1;
};
inline void check_graph(QuantNet& net, const CheckOptions& options = {},
                        std::shared_ptr<const engine::Plan>* plan_out = nullptr) {
  const auto plan = compile(net.graph, (*net.graph.inputs()[0]->type.shape)[0]);
  if (plan_out != nullptr) *plan_out = plan;
  const auto inputs = net.random_inputs(options.low, options.high);
  const auto expected = evaluate_graph(net.graph, inputs);
  const Run scalar = run_plan(plan, inputs, Isa::kScalar, 1);
  for (Isa isa : supported_isas())
    for (int threads = 1; threads <= 3; ++threads) {
      const Run run = run_plan(plan, inputs, isa, threads);
      const Comparison c = compare(run.dumps, expected);
      EXPECT_EQ(c.worse, 0) << isa_name(isa) << ", " << threads << " threads: codes off by more than one step";
      EXPECT_LE(c.off_by_one, options.off_by_one * static_cast<double>(c.codes) + 1) << isa_name(isa);
      EXPECT_LE(c.worst_float, options.float_tolerance) << isa_name(isa) << ", " << threads << " threads";
      if (!options.bit_equal) continue;
      for (const auto& [name, array] : scalar.outputs)
        EXPECT_EQ(array.data, run.outputs.at(name).data) << name << " on " << isa_name(isa) << ", " << threads;
      ASSERT_EQ(scalar.dumps.size(), run.dumps.size());
      for (size_t i = 0; i < run.dumps.size(); ++i)
        EXPECT_EQ(scalar.dumps[i].codes, run.dumps[i].codes) << run.dumps[i].name << " on " << isa_name(isa);
    }
}

}  // namespace octet::testing
