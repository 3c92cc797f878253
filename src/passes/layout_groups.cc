#include "passes/layout_groups.h"

#include <algorithm>

#include "base/error.h"
#include "ir/axes.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

// What a Transpose costs: next to nothing where it is a Reshape.
constexpr int kReshape = 1, kAtBorder = 8, kInside = 16;
// Beside an operator of images, which the engine has in its own layout.
constexpr int kBesideImages = 24;

int cost_of(const ir::Shape& shape, const Order& order, int cost) {
  return is_identity(order) ? 0 : moves_nothing(shape, order) ? kReshape : cost;
}

bool takes_images(const Node* node) {
  if (!node) return false;
  switch (node->kind) {
    case OpKind::kConv:
    case OpKind::kConvTranspose:
    case OpKind::kBatchNormalization:
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
    case OpKind::kGlobalAveragePool:
    case OpKind::kGlobalMaxPool:
    case OpKind::kLRN:
    case OpKind::kResize:
    case OpKind::kDepthToSpace:
      return true;
    default:
      return false;
  }
}

bool moves_activations(const Node* node) {
  return node && node->kind == OpKind::kTranspose && node->input(0)->type.shape && !node->input(0)->is_constant();
}

}  // namespace

Order order_of(const Node& transpose) {
  return ir::permutation_of(transpose, transpose.input(0)->type.shape->size());
}

LayoutGroup::LayoutGroup(const Graph& graph, Node* transpose) : graph_(graph) {
  while (!grow(transpose)) {
    seen_nodes_.clear();
    index_.clear();
    tensors_.clear();
    permutable_.clear();
    transposes_.clear();
  }
  for (Tensor& t : tensors_) {
    const Node* maker = t.value->producer;
    if (maker && is_inside(maker)) t.maker = moves_activations(maker) ? Maker::kTranspose : Maker::kPermutable;
    for (Node* user : t.value->users) {
      std::vector<Node*>& readers = is_inside(user) ? t.inside : t.outside;
      if (std::find(readers.begin(), readers.end(), user) == readers.end()) readers.push_back(user);
    }
  }
}

bool LayoutGroup::is_inside(const Node* node) const {
  return seen_nodes_.count(node) > 0 && contradictory_.count(node) == 0;
}

const LayoutGroup::Tensor* LayoutGroup::find(const Value* value) const {
  const auto found = index_.find(value);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

bool LayoutGroup::grow(Node* transpose) {
  visit(transpose->input(0), ir::all_axes(transpose->input(0)->type.shape->size()));
  if (!join(transpose)) return false;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Value* value = tensors_[i].value;
    if (value->producer && !join(value->producer)) return false;
    for (size_t u = 0; u < value->users.size(); ++u)
      if (!join(value->users[u])) return false;
  }
  return true;
}

bool LayoutGroup::visit(Value* value, const Order& place) {
  const auto [at, is_new] = index_.try_emplace(value, tensors_.size());
  if (!is_new) return tensors_[at->second].place == place;
  tensors_.push_back({.value = value, .place = place, .shape = *value->type.shape, .inside = {}, .outside = {}});
  return true;
}

// The node's tensors join the group where it is a Transpose or can be permuted.
bool LayoutGroup::join(Node* node) {
  if (contradictory_.count(node) > 0 || seen_nodes_.count(node) > 0) return true;
  const auto known = [&](const Value* v) { return v && index_.count(v) > 0; };
  bool fits = true;
  if (moves_activations(node) && node->output() && node->output()->type.shape) {
    seen_nodes_.insert(node);
    transposes_.push_back(node);
    Value *x = node->input(0), *y = node->output();
    const Order order = order_of(*node);
    // x held in p is y held in q where p is q after the Transpose.
    if (known(x))
      fits = visit(y, compose(inverse(order), Order(tensors_[index_.at(x)].place)));
    else
      fits = visit(x, compose(order, Order(tensors_[index_.at(y)].place)));
  } else if (can_permute(*node)) {
    seen_nodes_.insert(node);
    permutable_.push_back(node);
    std::vector<Value*> values;
    for (size_t i = 0; i < placed_inputs(*node); ++i)
      if (!is_fixed_operand(node->input(i))) values.push_back(node->input(i));
    for (Value* out : node->outputs)
      if (out && (node->kind != OpKind::kDropout || out == node->output())) values.push_back(out);
    const auto first = std::find_if(values.begin(), values.end(), known);
    if (first == values.end()) {  // the node reads the tensor in another way: as pads, as a scale
      seen_nodes_.erase(node);
      permutable_.pop_back();
      return true;
    }
    const Order place = tensors_[index_.at(*first)].place;
    for (Value* value : values) fits = visit(value, place) && fits;
  }
  if (!fits) contradictory_.insert(node);
  return fits;
}

Order LayoutGroup::held(const Tensor& tensor, const Order& order) {
  return compose(tensor.place, order);
}

LayoutGroup::Cost LayoutGroup::cost(const Order& order) const {
  Cost sum;
  const auto add = [&](const ir::Shape& shape, const Order& own, bool border, bool images) {
    sum.count += !moves_nothing(shape, own);
    sum.transposes += cost_of(shape, own, border ? kAtBorder : kInside);
    sum.places += cost_of(shape, own, border ? kAtBorder : images ? kBesideImages : kInside);
  };
  for (const Tensor& t : tensors_) {
    const Order own = held(t, order);
    if (is_identity(own)) continue;
    if (t.maker == Maker::kOther) {
      if (!t.inside.empty()) add(t.shape, own, !t.value->producer, takes_images(t.value->producer));
      continue;
    }
    bool needed = graph_.is_output(t.value), border = true, images = false;
    for (const Node* reader : t.outside) {
      if (const auto behind = order_behind(graph_, *reader, own)) {
        add(*reader->output()->type.shape, inverse(*behind), /*border=*/false, /*images=*/false);
        continue;
      }
      needed = true, border = false;
      images = images || takes_images(reader);
    }
    if (needed) add(t.shape, own, border, images);
  }
  return sum;
}

LayoutGroup::Cost LayoutGroup::present_cost() const {
  Cost sum;
  for (const Node* node : transposes_) {
    const Value *x = node->input(0), *y = node->output();
    const bool images = takes_images(x->producer) || std::any_of(y->users.begin(), y->users.end(), takes_images);
    const bool border = !x->producer || (graph_.is_output(y) && y->users.empty());
    sum.count += !moves_nothing(*x->type.shape, order_of(*node));
    sum.transposes += cost_of(*x->type.shape, order_of(*node), border ? kAtBorder : kInside);
    sum.places += cost_of(*x->type.shape, order_of(*node), border ? kAtBorder : images ? kBesideImages : kInside);
  }
  return sum;
}

std::optional<Order> LayoutGroup::better_order() const {
  std::vector<Order> candidates;
  for (const Tensor& t : tensors_) {
    if (t.maker != Maker::kOther && t.outside.empty() && !graph_.is_output(t.value)) continue;
    const Order as_it_is = inverse(t.place);
    if (std::find(candidates.begin(), candidates.end(), as_it_is) == candidates.end()) candidates.push_back(as_it_is);
  }
  std::optional<Order> best;
  const Cost present = present_cost();
  int least = present.places;
  for (const Order& order : candidates)
    if (const Cost sum = cost(order);
        sum.count <= present.count && sum.transposes < present.transposes && sum.places < least) {
      least = sum.places;
      best = order;
    }
  return best;
}

}  // namespace octet::passes
