#include "passes/batch_axes.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;
using Axis = std::optional<size_t>;

int64_t count_before(const Shape& shape, size_t axis) {
  return ir::element_count(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis)));
}

// Index i along `axis` is (o, image, r) in row-major order, with o < outer. Outer is 1 but where rows of one sequence
// of images after another are joined: [tokens, images, width] to [tokens * images, width].
struct Place {
  size_t axis;
  int64_t outer = 1;
  bool operator==(const Place&) const = default;
};

class BatchFollower {
 public:
  BatchFollower(Graph& graph, int64_t batch) : graph_(graph), batch_(batch) {}

  bool run() {
    for (const Value* value : graph_.values())
      if (value->type.shape) before_[value] = *value->type.shape;
    for (Value* input : graph_.inputs()) {
      if (!known(input) || before_.at(input).empty()) return false;
      const int64_t images = before_.at(input).front();
      if (images == 0 || (input != graph_.inputs().front() && images != old_)) return false;
      old_ = images;
      input->type.shape->front() = batch_;
      place_[input] = {0};
    }
    for (Node* node : ir::node_list(graph_))
      if (!visit(*node)) return false;
    return std::all_of(graph_.outputs().begin(), graph_.outputs().end(), [&](const Value* output) {
      return axis_of(output) == Axis(0) && before_.at(output).front() == old_;
    });
  }

 private:
  bool known(const Value* value) const {
    const auto it = before_.find(value);
    return it != before_.end() && ir::is_static(it->second);
  }

  std::optional<Place> place_of(const Value* value) const {
    const auto it = place_.find(value);
    return it == place_.end() ? std::nullopt : std::optional(it->second);
  }
  Axis axis_of(const Value* value) const {
    const auto it = place_.find(value);
    return it == place_.end() ? Axis() : Axis(it->second.axis);
  }

  // What a tensor of the file becomes with the batch at this place; nothing where that has no whole images.
  std::optional<Shape> with_batch(const Value* value, const Place& place) const {
    Shape shape = before_.at(value);
    if (place.axis >= shape.size()) return std::nullopt;
    int64_t& size = shape[place.axis];
    if (size % old_ != 0 || size / old_ % place.outer != 0) return std::nullopt;
    if (__builtin_mul_overflow(size / old_, batch_, &size)) return std::nullopt;
    return shape;
  }

  // How many lie before the images on their axis, which must be the same in all inputs.
  std::optional<int64_t> outer_of(const Node& node) const {
    std::optional<int64_t> outer;
    for (const Value* in : node.inputs) {
      const std::optional<Place> place = in ? place_of(in) : std::nullopt;
      if (!place) continue;
      if (outer && *outer != place->outer) return std::nullopt;
      outer = place->outer;
    }
    return outer;
  }

  bool visit(Node& node) {
    if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](const Value* in) { return in && axis_of(in); }))
      return true;
    for (const Value* in : node.inputs)
      if (in && !known(in)) return false;
    for (const Value* out : node.outputs)
      if (out && !known(out)) return false;
    if (node.info().has(ir::trait::kReshapes)) return reshape(node);
    if (node.kind == OpKind::kConcat && !all_batched(node)) return concat_with_constants(node);
    if (node.kind == OpKind::kResize) scale_instead_of_sizes(node);
    const Axis axis = axis_behind(node);
    const std::optional<int64_t> outer = outer_of(node);
    if (!axis || !outer) return false;
    const Place place{*axis, *outer};
    ir::infer_node(node);
    for (const Value* out : node.outputs) {
      if (!out) continue;
      if (!out->type.shape || with_batch(out, place) != out->type.shape) return false;
      place_[out] = place;
    }
    return true;
  }

  bool all_batched(const Node& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Value* in) { return axis_of(in).has_value(); });
  }

  // --- one rule a family: the axis of the images in the outputs, or nothing

  Axis axis_behind(const Node& node) const {
    switch (node.kind) {
      case OpKind::kTranspose: {
        const size_t axis = *axis_of(node.input(0));
        const std::vector<int64_t> order = ir::permutation_of(node, rank_of(node.input(0)));
        return static_cast<size_t>(std::find(order.begin(), order.end(), static_cast<int64_t>(axis)) - order.begin());
      }
      case OpKind::kMatMul:
        return behind_matmul(node);
      case OpKind::kConcat: {
        const Axis axis = aligned(node);
        return axis && *axis != ir::normal_axis(node, node.get_int("axis"), rank_of(node.input(0))) ? axis : Axis();
      }
      case OpKind::kReduceMean:
      case OpKind::kReduceSum:
      case OpKind::kReduceMax:
        return behind_reduction(node);
      case OpKind::kSlice:
      case OpKind::kPad:
        return left_alone(node) ? axis_of(node.input(0)) : Axis();
      case OpKind::kLayerNormalization: {
        const Axis axis = only_first(node);
        return axis && *axis < ir::normal_axis(node, node.get_int("axis", -1), rank_of(node.input(0))) ? axis : Axis();
      }
      case OpKind::kSoftmax:
      case OpKind::kLogSoftmax:
      case OpKind::kSplit:
      case OpKind::kArgMax: {
        const Axis images = only_first(node);
        if (!images) return images;
        const size_t axis = ir::normal_axis(node, node.get_int("axis"), rank_of(node.input(0)));
        if (axis == *images) return std::nullopt;
        const bool gone = node.kind == OpKind::kArgMax && node.get_int("keepdims", 1) == 0;
        return *images - (gone && axis < *images);
      }
      case OpKind::kFakeQuantize:
        return node.input(1)->constant && node.input(1)->constant->size() == 1 ? only_first(node) : in_front(node);
      case OpKind::kDropout:
      case OpKind::kCast:
        return only_first(node);
      case OpKind::kExpand:
        return aligned(node);
      default:
        return node.info().has(ir::trait::kElementwise) ? aligned(node) : in_front(node);
    }
  }

  // Of what reads images through input 0 alone.
  Axis only_first(const Node& node) const {
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.input(i) && axis_of(node.input(i))) return std::nullopt;
    return axis_of(node.input(0));
  }

  // Operators whose first axis is that of images by what they mean: convolutions, pools, batch norms. Others may be
  // here, too, unless they say that they go along that axis.
  Axis in_front(const Node& node) const {
    for (const Value* in : node.inputs)
      if (in && axis_of(in).value_or(0) != 0) return std::nullopt;
    if (!axis_of(node.input(0))) return std::nullopt;
    if (node.kind == OpKind::kGemm && node.get_int("transA") != 0) return std::nullopt;
    if (node.kind == OpKind::kGemm && !only_first(node)) return std::nullopt;
    const bool along =
        node.info().find_attribute("axis") && ir::normal_axis(node, node.get_int("axis"), rank_of(node.input(0))) == 0;
    return along ? Axis() : Axis(0);
  }

  // Axes counted from the last, as operands broadcast; all must mean the same.
  Axis aligned(const Node& node) const {
    size_t rank = 0;
    for (const Value* out : node.outputs)
      if (out) rank = std::max(rank, before_.at(out).size());
    Axis found;
    for (const Value* in : node.inputs) {
      if (!in || !axis_of(in)) continue;
      const size_t axis = *axis_of(in) + rank - before_.at(in).size();
      if (found && *found != axis) return std::nullopt;
      found = axis;
    }
    return found;
  }

  // Not along the axis that is summed over, nor along the columns.
  Axis behind_matmul(const Node& node) const {
    const Value *a = node.input(0), *b = node.input(1);
    const Axis rows = axis_of(a), other = axis_of(b);
    if (rows && (rank_of(a) < 2 || *rows + 1 >= rank_of(a))) return std::nullopt;
    if (other && (rank_of(b) < 3 || *other + 2 >= rank_of(b))) return std::nullopt;
    if (rank_of(b) < 2 || (rows && other && *rows + 2 >= rank_of(a))) return std::nullopt;
    return aligned(node);
  }

  Axis behind_reduction(const Node& node) const {
    const Axis images = only_first(node);
    std::vector<int64_t> axes = node.get_ints("axes");
    if (node.has_input(1)) {
      if (!node.input(1)->is_constant()) return std::nullopt;
      axes = node.input(1)->constant->to_ints();
    }
    if (!images || axes.empty()) return std::nullopt;
    size_t gone = 0;
    for (const size_t axis : ir::normal_axes(node, axes, rank_of(node.input(0)))) {
      if (axis == *images) return std::nullopt;
      gone += axis < *images;
    }
    return node.get_int("keepdims", 1) != 0 ? *images : *images - gone;
  }

  // A Slice or Pad that takes the axis of the images as it is. That the size stays is checked with the shape.
  bool left_alone(const Node& node) const {
    if (!only_first(node)) return false;
    const size_t images = *axis_of(node.input(0)), rank = rank_of(node.input(0)), list = 3;
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.input(i) && !node.input(i)->is_constant()) return false;
    const std::vector<int64_t> first = node.input(1)->constant->to_ints();
    if (node.kind == OpKind::kPad) {
      const std::vector<int64_t> axes =
          node.has_input(list) ? node.input(list)->constant->to_ints() : ir::all_axes(rank);
      for (size_t i = 0; i < axes.size(); ++i)
        if (ir::normal_axis(node, axes[i], rank) == images && (first[i] != 0 || first[i + axes.size()] != 0))
          return false;
      return true;
    }
    const std::vector<int64_t> axes =
        node.has_input(list) ? node.input(list)->constant->to_ints() : ir::all_axes(first.size());
    const std::vector<int64_t> steps =
        node.has_input(4) ? node.input(4)->constant->to_ints() : std::vector<int64_t>(axes.size(), 1);
    for (size_t i = 0; i < axes.size(); ++i)
      if (ir::normal_axis(node, axes[i], rank) == images && steps[i] != 1) return false;
    return true;
  }

  // --- rewrites

  // The elements in their order: the images lie where as many elements lie before them, at the start of an axis or
  // within one. With a batch of one in the file that may be the end of an axis as well as the start of the next: it is
  // the end of the rows where the next are columns, which products sum over. A wrong guess is no harm: something behind
  // will not fit.
  std::optional<Place> place_behind_reshape(const Shape& to, int64_t before) const {
    std::optional<Place> found;
    for (size_t i = 0; i < to.size() && !found; ++i) {
      const int64_t here = count_before(to, i);
      if (here == before && to[i] % old_ == 0) found = Place{i};
    }
    const bool columns = found && found->axis > 0 && found->axis + 1 == to.size() && to.back() != old_;
    if (found && !columns) return found;
    for (size_t i = 0; i < to.size(); ++i) {
      const int64_t here = count_before(to, i);
      if (here < before && before % here == 0 && to[i] % old_ == 0 && to[i] / old_ % (before / here) == 0)
        return Place{i, before / here};
    }
    return found;
  }

  bool reshape(Node& node) {
    if (!only_first(node)) return false;
    const Value* x = node.input(0);
    Value* out = node.output();
    const Shape &from = before_.at(x), &to = before_.at(out);
    if (ir::element_count(from) == 0 || ir::element_count(to) == 0) return false;
    const Place source = *place_of(x);
    const std::optional<Place> place = place_behind_reshape(to, count_before(from, source.axis) * source.outer);
    if (!place) return false;
    const Shape wanted = *with_batch(out, *place);
    if (const std::optional<Shape> now = inferred(node); now == wanted) {
      place_[out] = *place;
      return true;
    }
    std::vector<int64_t> sizes = wanted;
    sizes[place->axis] = *place == source && from[place->axis] == to[place->axis] ? 0 : -1;
    Value* target = graph_.add_constant(graph_.unique_name(node.name + "/free_batch"),
                                        ir::Tensor::of<int64_t>({static_cast<int64_t>(sizes.size())}, sizes));
    before_[target] = *target->type.shape;
    Value* made =
        graph_.add(OpKind::kReshape, graph_.unique_name(node.name + "/free_batch"), {node.input(0), target}, {}, &node);
    return made->type.shape == wanted && replace(node, made, *place);
  }

  // Nothing where the shapes do not fit each other.
  static std::optional<Shape> inferred(Node& node) {
    try {
      ir::infer_node(node);
    } catch (const UserError&) {
      return std::nullopt;
    }
    return node.output()->type.shape;
  }

  bool replace(Node& node, Value* made, const Place& place) {
    const std::string name = node.name;
    const Shape shape = before_.at(node.output());
    place_.erase(node.output());
    before_.erase(node.output());
    Node* producer = made->producer;
    supersede(graph_, node.output(), made);
    graph_.rename(producer, graph_.unique_name(name));
    before_[made] = shape;
    place_[made] = place;
    return true;
  }

  // Constants that stand beside every image: each operand is padded to the whole, and the parts, zero where the others
  // are, are added. Exact, but for the sign of zeros.
  bool concat_with_constants(Node& node) {
    const Shape whole = before_.at(node.output());
    const size_t along = ir::normal_axis(node, node.get_int("axis"), whole.size());
    Axis axis;
    for (const Value* in : node.inputs) {
      if (!axis_of(in)) continue;
      if (axis) return false;  // several of them: no exporter has been seen to write that
      axis = axis_of(in);
    }
    if (*axis == along || outer_of(node) != 1 || node.output()->type.data_type != ir::DataType::kFloat32) return false;
    Value* sum = nullptr;
    int64_t offset = 0;
    for (Value* in : std::vector<Value*>(node.inputs)) {
      const Shape& part = before_.at(in);
      if (!axis_of(in) && part[*axis] != 1) return false;
      std::vector<int64_t> pads(2 * whole.size(), 0);
      pads[along] = offset;
      pads[whole.size() + along] = whole[along] - offset - part[along];
      offset += part[along];
      const std::string name = graph_.unique_name(node.name + "/pad");
      Value* amounts = graph_.add_constant(graph_.unique_name(name + "/pads"),
                                           ir::Tensor::of<int64_t>({static_cast<int64_t>(pads.size())}, pads));
      before_[amounts] = *amounts->type.shape;
      Value* padded = graph_.add(OpKind::kPad, name, {in, amounts}, {}, &node);
      sum = sum ? graph_.add(OpKind::kAdd, graph_.unique_name(node.name + "/sum"), {sum, padded}, {}, &node) : padded;
    }
    return sum->type.shape == with_batch(node.output(), {*axis}) && replace(node, sum, {*axis});
  }

  // Sizes name the batch; the scales of a Resize that come to the same do not.
  void scale_instead_of_sizes(Node& node) {
    if (!node.has_input(3) || !node.input(3)->is_constant() || node.has("axes")) return;
    const Shape &from = before_.at(node.input(0)), &to = before_.at(node.output());
    if (from.empty() || from.size() != to.size() || from[0] != to[0]) return;
    std::vector<float> scales(from.size());
    constexpr int64_t kMostExact = 1 << 24;  // integers that float32 has
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 0 || from[i] > kMostExact || to[i] > kMostExact) return;
      scales[i] = static_cast<float>(to[i]) / static_cast<float>(from[i]);
      if (static_cast<int64_t>(static_cast<float>(from[i]) * scales[i]) != to[i]) return;
    }
    Value* value = graph_.add_constant(graph_.unique_name(node.name + "/scales"),
                                       ir::Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales));
    before_[value] = *value->type.shape;
    graph_.set_input(&node, 2, value);
    graph_.set_input(&node, 3, nullptr);
    node.inputs.pop_back();
    node.attributes.erase("keep_aspect_ratio_policy");
  }

  Graph& graph_;
  const int64_t batch_;
  int64_t old_ = 1;                                 // batch of the file
  std::unordered_map<const Value*, Shape> before_;  // with it
  std::unordered_map<const Value*, Place> place_;   // of the images, in what depends on the input
};

}  // namespace

bool follow_batch(ir::Graph& graph, int64_t batch) {
  const bool good = BatchFollower(graph, batch).run();
  if (good) graph.remove_dead();
  return good;
}

}  // namespace octet::passes
