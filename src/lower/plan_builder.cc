#include "lower/plan_builder.h"

#include <algorithm>

#include "base/error.h"
#include "dense/program.h"
#include "ir/query.h"
#include "lower/products.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using engine::Buffer;
using engine::Layout;
using engine::Step;
using ir::Value;

// NCHW and NHWC are the same bytes.
bool same_order(const std::vector<int64_t>& shape) {
  return shape.size() == 4 && (shape[1] == 1 || shape[2] * shape[3] == 1);
}

Buffer buffer_of_codes(const Value* value, const numerics::QuantParams& params, Layout layout) {
  const int32_t offset = code_offset(params);
  return {.name = value->name,
          .layout = layout,
          .shape = shape_of(value),
          .scale = params.scale,
          .zero_point = params.zero_point + offset,
          .code_offset = offset,
          .code_min = params.qmin + offset,
          .code_max = params.qmax + offset};
}

}  // namespace

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
  return strides;
}

std::vector<int64_t> nhwc_strides(const std::vector<int64_t>& s) {
  return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
}

std::vector<int64_t> float_strides(const std::vector<int64_t>& shape, bool is_nhwc) {
  return is_nhwc ? nhwc_strides(shape) : dense_strides(shape);
}

bool reads_image(const ir::Node& node) {
  switch (node.kind) {
    case ir::OpKind::kConv:
    case ir::OpKind::kConvTranspose:
    case ir::OpKind::kMaxPool:
    case ir::OpKind::kAveragePool:
    case ir::OpKind::kGlobalAveragePool:
    case ir::OpKind::kGlobalMaxPool:
    case ir::OpKind::kResize:
    case ir::OpKind::kLRN:
    case ir::OpKind::kDepthToSpace:
    case ir::OpKind::kBatchNormalization:
      return true;
    default:
      return false;
  }
}

bool read_as_image(const Value* value) {
  if (shape_of(value).size() != 4) return false;
  return std::any_of(value->users.begin(), value->users.end(), [](const ir::Node* user) {
    return reads_image(*user) || (is_quantizer(user) && !feeds_products(*user));
  });
}

PlanBuilder::PlanBuilder(const ir::Graph& graph, bool outputs_stay) : graph_(graph), outputs_stay_(outputs_stay) {
  plan_.name = graph.name;
  plan_.metadata = graph.metadata;
  size_t bytes = 0;
  for (const Value* constant : graph.constants()) bytes += constant->constant->bytes().size();
  constants_.reserve(bytes);  // usually too much, but memory that nobody touches costs nothing
  for (const Value* input : graph.inputs()) {
    const int id = add_buffer({.name = input->name, .shape = shape_of(input)});
    plan_.inputs.push_back(id);
    forms_[input].dense = id;
  }
  if (outputs_stay) return;
  for (const Value* output : graph.outputs()) {
    const int id = add_buffer({.name = output->name, .shape = shape_of(output)});
    plan_.outputs.push_back(id);
    unwritten_outputs_.emplace(output, id);
  }
}

int PlanBuilder::add_buffer(Buffer buffer) {
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int PlanBuilder::alias(int id, const std::string& name, Layout layout, std::vector<int64_t> shape) {
  return add_buffer({.name = name, .layout = layout, .shape = std::move(shape), .alias_of = root(id)});
}

bool PlanBuilder::has_codes(const Value* value) const {
  const auto found = forms_.find(value);
  return found != forms_.end() && found->second.codes >= 0;
}

int PlanBuilder::codes(const Value* value) const {
  OCTET_CHECK(has_codes(value), "no codes of '", value->name, "'");
  return forms_.at(value).codes;
}

Step& PlanBuilder::convert(const char* kind, const Value* value, int from, int to) {
  Step s{.kind = kind, .name = value->name, .op = kind, .inputs = {from}, .outputs = {to}};
  plan_.steps.push_back(std::move(s));
  return plan_.steps.back();
}

int PlanBuilder::materialize_constant(const Value* value) {
  const auto values = constant_floats(value);
  OCTET_CHECK(values.has_value(), "'", value->name, "' has no tensor");
  const int id = add_buffer({.name = value->name, .shape = shape_of(value)});
  const int64_t count = static_cast<int64_t>(values->size());
  const auto ref = constant(*values);
  plan_.steps.push_back({.kind = "strided_copy", .name = value->name, .op = "Constant", .outputs = {id}});
  Step& s = plan_.steps.back();
  s.ints["rank"] = 1;
  s.lists["dims"] = {count}, s.lists["in_strides"] = {1}, s.lists["out_strides"] = {1};
  s.constants["value"] = ref;
  forms_[value].dense = id;
  return id;
}

int PlanBuilder::nhwc(const Value* value) {
  Forms& forms = forms_[value];
  if (forms.nhwc >= 0) return forms.nhwc;
  const auto& shape = shape_of(value);
  OCTET_CHECK(shape.size() == 4, "'", value->name, "' is no image");
  if (forms.codes >= 0) {
    forms.nhwc = add_buffer({.name = value->name, .layout = Layout::kFloatNhwc, .shape = shape});
    convert("dequantize", value, forms.codes, forms.nhwc).int8 = true;
    return forms.nhwc;
  }
  const int from = forms.dense >= 0 || forms.index >= 0 ? dense(value) : materialize_constant(value);
  if (same_order(shape)) return forms_[value].nhwc = alias(from, value->name, Layout::kFloatNhwc, shape);
  const int to = add_buffer({.name = value->name, .layout = Layout::kFloatNhwc, .shape = shape});
  const int64_t n = shape[0], c = shape[1], h = shape[2], w = shape[3];
  Step& s = convert("strided_copy", value, from, to);
  s.op = "NCHW to NHWC";
  s.ints["rank"] = 4;
  s.lists["dims"] = {n, h, w, c};
  s.lists["in_strides"] = {c * h * w, w, 1, h * w};
  s.lists["out_strides"] = {h * w * c, w * c, c, 1};
  return forms_[value].nhwc = to;
}

int PlanBuilder::dense(const Value* value) {
  Forms& forms = forms_[value];
  if (forms.dense >= 0) return forms.dense;
  const auto& shape = shape_of(value);
  if (forms.index >= 0) {
    const int from = forms.index, to = define_dense(value);
    convert("index_to_float", value, from, to);
    return to;
  }
  if (forms.codes >= 0) {
    const int from = forms.codes, to = define_dense(value);
    convert("dequantize", value, from, to).int8 = true;
    return to;
  }
  if (forms.nhwc < 0) return materialize_constant(value);
  const int from = forms.nhwc;
  if (same_order(shape) && unwritten_outputs_.count(value) == 0)
    return forms.dense = alias(from, value->name, Layout::kFloatDense, shape);
  const int to = define_dense(value);
  const int64_t n = shape[0], c = shape[1], h = shape[2], w = shape[3];
  Step& s = convert("strided_copy", value, from, to);
  s.op = "NHWC to NCHW";
  s.ints["rank"] = 4;
  s.lists["dims"] = {n, c, h, w};
  s.lists["in_strides"] = {h * w * c, 1, w * c, c};
  s.lists["out_strides"] = {c * h * w, h * w, w, 1};
  return to;
}

int PlanBuilder::real(const Value* value) {
  return shape_of(value).size() == 4 ? nhwc(value) : dense(value);
}

bool PlanBuilder::is_nhwc(const Value* value) const {
  const auto found = forms_.find(value);
  if (shape_of(value).size() != 4 || found == forms_.end()) return false;
  return found->second.nhwc >= 0 || found->second.dense < 0;
}

int PlanBuilder::real_as(const Value* value, bool is_nhwc) {
  return is_nhwc ? nhwc(value) : dense(value);
}

int PlanBuilder::any_real(const Value* value, bool* is_nhwc) {
  *is_nhwc = this->is_nhwc(value);
  return real_as(value, *is_nhwc);
}

int PlanBuilder::define_codes(const Value* value, const numerics::QuantParams& params) {
  if (has_codes(value)) return codes(value);  // a tensor whose pieces are there
  Buffer buffer = buffer_of_codes(value, params, Layout::kCodes);
  if (const auto place = places_.find(value); place != places_.end()) {
    buffer.alias_of = define_codes(place->second.whole, place->second.params);
    buffer.channel_offset = place->second.channel;
  }
  return forms_[value].codes = add_buffer(std::move(buffer));
}

int PlanBuilder::define_code_rows(const Value* value, const numerics::QuantParams& params, Layout layout) {
  const int id = add_buffer(buffer_of_codes(value, params, layout));
  Forms& forms = forms_[value];
  return (layout == Layout::kCodeRows ? forms.code_rows : forms.code_columns) = id;
}

int PlanBuilder::code_rows(const Value* value, Layout layout) const {
  const auto found = forms_.find(value);
  if (found == forms_.end()) return -1;
  return layout == Layout::kCodeRows ? found->second.code_rows : found->second.code_columns;
}

int PlanBuilder::pixels(int codes, const std::string& name, int64_t h, int64_t w, Buffer::Every rows,
                        Buffer::Every columns) {
  Buffer part = plan_.buffers[codes];
  part.name = name;
  part.shape = {part.n(), part.c(), h, w};
  part.halo = {};
  part.alias_of = root(codes), part.rows = rows, part.columns = columns;
  return add_buffer(std::move(part));
}

int PlanBuilder::define_real(const Value* value) {
  if (shape_of(value).size() != 4) return define_dense(value);
  return forms_[value].nhwc = add_buffer({.name = value->name, .layout = Layout::kFloatNhwc, .shape = shape_of(value)});
}

int PlanBuilder::define_dense(const Value* value) {
  // What the graph puts out is written straight to the caller's memory.
  if (const auto found = unwritten_outputs_.find(value); found != unwritten_outputs_.end()) {
    const int id = found->second;
    unwritten_outputs_.erase(found);
    return forms_[value].dense = id;
  }
  return forms_[value].dense = add_buffer({.name = value->name, .shape = shape_of(value)});
}

int PlanBuilder::define_real_as(const Value* value, bool is_nhwc) {
  return is_nhwc ? define_real(value) : define_dense(value);
}

int PlanBuilder::define_index(const Value* value) {
  return forms_[value].index =
             add_buffer({.name = value->name, .layout = Layout::kIndexDense, .shape = shape_of(value)});
}

void PlanBuilder::same_codes(const Value* value, const Value* as) {
  forms_[value].codes = codes(as);
}

void PlanBuilder::channels_of(const Value* value, const Value* whole, int64_t first) {
  const int id = codes(whole);
  Buffer part = plan_.buffers[id];
  part.name = value->name, part.shape = shape_of(value);
  part.halo = {};
  part.alias_of = root(id), part.channel_offset += first;
  forms_[value].codes = add_buffer(std::move(part));
}

void PlanBuilder::same_dense(const Value* value, int id) {
  forms_[value].dense = alias(id, value->name, Layout::kFloatDense, shape_of(value));
}

void PlanBuilder::same_nhwc(const Value* value, int id) {
  forms_[value].nhwc = alias(id, value->name, Layout::kFloatNhwc, shape_of(value));
}

int PlanBuilder::scratch(const std::string& name, Layout layout, std::vector<int64_t> shape) {
  return add_buffer({.name = name, .layout = layout, .shape = std::move(shape)});
}

int PlanBuilder::row_sums(const Value* value, const ir::Node& node) {
  const int from = codes(value);
  const Buffer& b = plan_.buffers[from];
  const int sums = scratch(value->name + "/row_sums", Layout::kSums, {b.n(), b.h(), kernels::padded_channels(b.c())});
  for (Step& s : plan_.steps) {
    if (s.kind != "depthwise" || s.outputs != std::vector<int>{from}) continue;
    s.outputs.push_back(sums), s.ints["row_sums"] = 1;
    return sums;
  }
  step("row_sums", node, {from}, {sums}).int8 = true;
  return sums;
}

void PlanBuilder::need_halo(int id, const kernels::Halo& halo) {
  kernels::Halo& h = plan_.buffers[root(id)].halo;
  h.top = std::max(h.top, halo.top), h.bottom = std::max(h.bottom, halo.bottom);
  h.left = std::max(h.left, halo.left), h.right = std::max(h.right, halo.right);
}

void PlanBuilder::set_source(const ir::Node& node, const ir::Node& named_after, std::string op, std::string reason) {
  source_ = &node, source_name_ = named_after.name, source_op_ = std::move(op), source_reason_ = std::move(reason);
}

Step& PlanBuilder::step(const std::string& kind, const ir::Node& node, std::vector<int> inputs,
                        std::vector<int> outputs) {
  const bool known = source_ == &node;
  plan_.steps.push_back({.kind = kind,
                         .name = known ? source_name_ : node.name,
                         .op = known ? source_op_ : node.info().name,
                         .inputs = std::move(inputs),
                         .outputs = std::move(outputs),
                         .reason = known ? source_reason_ : ""});
  return plan_.steps.back();
}

engine::ConstantRef PlanBuilder::constant_bytes(std::span<const std::byte> bytes) {
  constants_.resize((constants_.size() + 63) / 64 * 64);
  const engine::ConstantRef ref{static_cast<int64_t>(constants_.size()), static_cast<int64_t>(bytes.size())};
  constants_.insert(constants_.end(), bytes.begin(), bytes.end());
  return ref;
}

Step& PlanBuilder::copy(const ir::Node& node, int in, int out, const Walk& walk) {
  if (walk.dims.empty()) return copy(node, in, out, {{1}, {0}, {0}, walk.in_offset, walk.out_offset});
  Step& s = step("strided_copy", node, {in}, {out});
  s.ints["rank"] = static_cast<int64_t>(walk.dims.size());
  if (walk.in_offset != 0) s.ints["in_offset"] = walk.in_offset;
  if (walk.out_offset != 0) s.ints["out_offset"] = walk.out_offset;
  s.lists["dims"] = walk.dims, s.lists["in_strides"] = walk.in_strides, s.lists["out_strides"] = walk.out_strides;
  return s;
}

engine::Plan PlanBuilder::finish() {
  if (outputs_stay_) {
    bool is_nhwc = false;
    for (const Value* value : graph_.outputs()) any_real(value, &is_nhwc);
  }
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const Value* value = graph_.outputs()[i];
    const int target = plan_.outputs[i], id = dense(value);
    if (id == target) continue;
    // The tensor lies elsewhere: an input handed through, an output twice, other tensors read it in this form too.
    Step& s = convert("strided_copy", value, id, target);
    const int64_t count = plan_.buffers[target].elements();
    s.op = "Output";
    s.ints["rank"] = 1;
    s.lists["dims"] = {count}, s.lists["in_strides"] = {1}, s.lists["out_strides"] = {1};
  }
  if (graph_.program && !outputs_stay_) {
    plan_.program = graph_.program;
    const std::string bytes = dense::program_bytes(*graph_.program);
    plan_.program_bytes = constant_bytes(std::as_bytes(std::span(bytes)));
  }
  constants_.resize((constants_.size() + 63) / 64 * 64);
  plan_.constants = engine::make_constant_blob(constants_);
  engine::plan_memory(plan_);
  engine::validate(plan_);
  return std::move(plan_);
}

}  // namespace octet::lower
