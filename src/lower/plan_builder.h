// Collects buffers, constants and steps, and converts tensors between codes and floats where a step wants them so.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/plan.h"
#include "ir/graph.h"
#include "numerics/quantize.h"

namespace octet::lower {

class PlanBuilder {
 public:
  // Makes the buffers of the graph's inputs and, unless they stay where the steps make them, of its outputs.
  explicit PlanBuilder(const ir::Graph& graph, bool outputs_stay = false);

  // --- tensors that earlier steps made, in the wanted form; a conversion step is added the first time.
  int codes(const ir::Value* value) const;  // must have been defined
  bool has_codes(const ir::Value* value) const;
  int nhwc(const ir::Value* value);   // rank 4 only
  int dense(const ir::Value* value);  // row-major
  int real(const ir::Value* value);   // floats in the natural layout: NHWC for rank 4, else dense
  // Floats in whatever layout they are; *is_nhwc tells.
  int any_real(const ir::Value* value, bool* is_nhwc);
  // Whether any_real() would give NHWC: of several, where one does that is no image of one pixel.
  bool is_nhwc(const ir::Value* value) const;
  // Floats in this layout, which is that of a value of rank 4.
  int real_as(const ir::Value* value, bool is_nhwc);

  // Does anybody read the floats of this value? Where nothing was said of it (`read`): of every value.
  void set_read(const std::unordered_set<const ir::Value*>* read) { read_ = read; }
  bool is_read(const ir::Value* value) const { return read_ == nullptr || read_->count(value) > 0; }

  // --- tensors that the next step makes.
  // The codes of `value`; `params` are the graph's.
  int define_codes(const ir::Value* value, const numerics::QuantParams& params);
  // Its codes as rows of matrices (kCodeRows, kCodeColumns), which are a form of their own: -1 where there are none.
  int define_code_rows(const ir::Value* value, const numerics::QuantParams& params, engine::Layout layout);
  int code_rows(const ir::Value* value, engine::Layout layout) const;
  // The codes of `value` shall be made in those of `whole`, from a channel on (a piece of a Concat).
  struct Place {
    const ir::Value* whole;
    int64_t channel;
    numerics::QuantParams params;
  };
  void set_place(const ir::Value* value, const Place& place) { places_.emplace(value, place); }
  bool has_place(const ir::Value* value) const { return places_.count(value) > 0; }
  // The codes of `piece` are made where those of `whole` want them.
  bool in_place(const ir::Value* piece, const ir::Value* whole) const {
    return has_codes(piece) && has_codes(whole) && codes(piece) != codes(whole) &&
           root(codes(piece)) == root(codes(whole));
  }
  // The pixels of `codes`, a whole tensor, in these places; its neighbors stay as they are.
  int pixels(int codes, const std::string& name, int64_t h, int64_t w, engine::Buffer::Every rows,
             engine::Buffer::Every columns);
  int define_real(const ir::Value* value);  // NHWC for rank 4, else dense
  int define_dense(const ir::Value* value);
  int define_real_as(const ir::Value* value, bool is_nhwc);
  int define_index(const ir::Value* value);
  // `value` has the codes (the floats) of a buffer that exists: nothing moves.
  void same_codes(const ir::Value* value, const ir::Value* as);
  void same_dense(const ir::Value* value, int buffer);
  void same_nhwc(const ir::Value* value, int buffer);
  // `value` has the codes of `whole` in these channels.
  void channels_of(const ir::Value* value, const ir::Value* whole, int64_t first);
  // A tensor between two steps of one node.
  int scratch(const std::string& name, engine::Layout layout, std::vector<int64_t> shape);

  // The row sums of the codes of `value`, for steps of `node`: made by the step that makes the codes where it can, else
  // by one of their own.
  int row_sums(const ir::Value* value, const ir::Node& node);

  engine::Buffer& buffer(int id) { return plan_.buffers[id]; }
  // Widens the border of a code buffer.
  void need_halo(int codes, const kernels::Halo& halo);

  // The reference is valid until the next call that may add a step.
  engine::Step& step(const std::string& kind, const ir::Node& node, std::vector<int> inputs, std::vector<int> outputs);
  template <typename T>
  engine::ConstantRef constant(std::span<const T> values) {
    return constant_bytes(std::as_bytes(values));
  }
  template <typename T>
  engine::ConstantRef constant(const std::vector<T>& values) {
    return constant_bytes(std::as_bytes(std::span<const T>(values)));
  }
  engine::ConstantRef constant_bytes(std::span<const std::byte> bytes);
  // For the following steps of `node`: the node of the source graph that reports name them after, what they stand for
  // ("Conv+Relu"), and why they are not INT8.
  void set_source(const ir::Node& node, const ir::Node& named_after, std::string op, std::string reason = "");

  // A strided copy of floats.
  struct Walk {
    std::vector<int64_t> dims, in_strides, out_strides;
    int64_t in_offset = 0, out_offset = 0;
  };
  engine::Step& copy(const ir::Node& node, int in, int out, const Walk& walk);

  // Fills the graph's outputs, plans the memory and checks the result.
  engine::Plan finish();

 private:
  struct Forms {
    int codes = -1, nhwc = -1, dense = -1, index = -1, code_rows = -1, code_columns = -1;
  };
  int add_buffer(engine::Buffer buffer);
  int materialize_constant(const ir::Value* value);
  int root(int id) const { return plan_.buffers[id].alias_of >= 0 ? plan_.buffers[id].alias_of : id; }
  int alias(int id, const std::string& name, engine::Layout layout, std::vector<int64_t> shape);
  engine::Step& convert(const char* kind, const ir::Value* value, int from, int to);

  const ir::Graph& graph_;
  const bool outputs_stay_;
  engine::Plan plan_;
  std::vector<std::byte> constants_;
  std::unordered_map<const ir::Value*, Forms> forms_;
  std::unordered_map<const ir::Value*, int> unwritten_outputs_;
  std::unordered_map<const ir::Value*, Place> places_;
  std::string source_name_, source_op_, source_reason_;
  const ir::Node* source_ = nullptr;
  const std::unordered_set<const ir::Value*>* read_ = nullptr;
};

// Row-major strides of a shape, and those of a rank-4 shape (N, C, H, W) whose memory is NHWC.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape);
std::vector<int64_t> nhwc_strides(const std::vector<int64_t>& shape);
// Those of floats in one of the two layouts.
std::vector<int64_t> float_strides(const std::vector<int64_t>& shape, bool is_nhwc);
// An operator over N, C, H, W.
bool reads_image(const ir::Node& node);
// Where the layout of a result of rank 4 is free: whether one of its readers wants images.
bool read_as_image(const ir::Value* value);

}  // namespace octet::lower
