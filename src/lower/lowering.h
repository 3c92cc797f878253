// The two walks over a canonical graph. Backwards, every node that somebody needs is given a job: what it reads (codes
// or floats) and which steps it becomes; a job may take over the nodes before it (fusion). Forwards, the jobs add their
// steps to the plan.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lower/emit_int8.h"
#include "lower/plan_builder.h"
#include "lower/pointwise.h"
#include "lower/weighted.h"

namespace octet::lower {

// FakeQuantize([clamps] mean of x over the image or a window).
struct QuantizedAverage {
  const ir::Node* op = nullptr;
  const ir::Value* x = nullptr;
  bool global = false;
  Bounds bounds{};
  std::string name;  // "GlobalAveragePool+Relu"
};

class Lowering {
 public:
  // `graph` is canonical, with types, and made from `source`, whose names reasons use; both outlive this.
  Lowering(const ir::Graph& graph, const ir::Graph& source);
  engine::Plan run(bool outputs_stay);  // as in CompileOptions

 private:
  using Job = std::function<void(PlanBuilder&)>;

  // --- which tensors have codes
  void find_quantized();
  bool carries_codes(const ir::Node& node) const;  // its results have codes because its inputs have
  const numerics::QuantParams* quant(const ir::Value* v) const;
  bool quantized(const ir::Value* v) const { return quant(v) != nullptr; }

  // --- backwards
  void need_codes(const ir::Value* v) { needs_codes_.insert(v); }
  void need_real(const ir::Value* v);
  bool needed(const ir::Node& node) const;
  void select(const ir::Node& node);
  void select_quantizer(const ir::Node& node);
  void select_carrier(const ir::Node& node);
  void select_real(const ir::Node& node);
  void place_pieces(const ir::Node& concat);
  // Jobs that end in the quantizer `node`; nothing when the pattern does not fit.
  std::optional<Job> fused_chain(const ir::Node& node);
  std::optional<Int8Chain> read_fused_chain(const ir::Node& node);
  std::optional<Int8Chain> read_chain(const Chain& chain, const numerics::QuantParams& output) const;
  Job chain_job(const Int8Chain& chain);
  std::optional<Job> fused_sum(const ir::Node& node);
  std::optional<Job> fused_average(const ir::Node& node);
  std::optional<Job> fused_normalization(const ir::Node& node);
  std::optional<QuantizedAverage> read_average(const ir::Node& quantizer) const;
  std::optional<Job> table(const ir::Node& node);
  PointwiseAnalysis::Source table_source(const ir::Node& quantizer) const;  // root: nullptr where it is no table
  // A convolution with the table behind it.
  std::optional<Int8Chain> read_table_chain(const ir::Node& node);
  // A convolution, its activation and the quantizer behind it, with nothing quantized between them.
  std::optional<Int8Chain> read_function_chain(const ir::Node& node);
  std::optional<Job> function_chain(const ir::Node& node);
  std::optional<Job> squeeze_excite(const ir::Node& node);
  // Do those who read `root`, and what lies between it and the result of `quantizer`, serve that result alone?
  struct Readers {
    bool root, inner;
  };
  Readers readers(const ir::Value* root, const ir::Node& quantizer) const;
  // A chain with INT8 arithmetic and float output; the reason goes to *why when it cannot be.
  std::optional<Job> int8_chain_to_float(const Chain& chain, const ir::Value* value, std::string* why);
  Chain int8_chain_at(const ir::Value* value) const;  // that ends there, with what may be its residual
  bool read_weighted(const Chain& chain, Weighted* w, QuantizedWeights* weights, std::string* why) const;
  std::string reason(const ir::Node& node) const;
  // "input 'x' is not quantized", or why a quantized one is no use.
  std::string input_reason(const ir::Value* x) const;
  // A value of the source graph that stands for one that the compiler may have made.
  const ir::Value* in_source(const ir::Value* v) const;

  const ir::Graph& graph_;
  const ir::Graph& source_;
  bool has_quantizers_ = false;
  std::unordered_map<const ir::Value*, numerics::QuantParams> quant_;
  std::optional<PointwiseAnalysis> pointwise_;
  std::optional<PointwiseAnalysis> activations_;  // with the results of convolutions (and residual sums) as roots
  std::unordered_set<const ir::Value*> needs_codes_, needs_real_;
  std::unordered_map<const ir::Value*, PlanBuilder::Place> places_;
  std::vector<Job> jobs_;  // last node first
};

// N x C x 1 x 1 and N x C are the same codes: `node` only renames them.
bool keeps_features(const ir::Node& node);
// GlobalAveragePool, or ReduceMean over the image.
bool is_global_average(const ir::Node& node);

}  // namespace octet::lower
