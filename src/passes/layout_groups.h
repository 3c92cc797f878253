// Tensors that can be held in one order of their axes together: those that Transposes and operators which compute in
// any order (permuted_nodes.h) join. Everything else needs its tensors as they are.
#pragma once
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/permuted_nodes.h"

namespace octet::passes {

// The permutation of a Transpose whose input has a known rank.
Order order_of(const ir::Node& transpose);

class LayoutGroup {
 public:
  enum class Maker { kOther, kTranspose, kPermutable };
  struct Tensor {
    ir::Value* value = nullptr;
    Order place;  // held in the order compose(place, order of the group)
    ir::Shape shape;
    Maker maker = Maker::kOther;
    std::vector<ir::Node*> inside;   // readers that belong to the group
    std::vector<ir::Node*> outside;  // those that need the tensor as it is
  };

  // That of the input of a Transpose.
  LayoutGroup(const ir::Graph& graph, ir::Node* transpose);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  // Operators that compute in any order, in the order in which they were found.
  const std::vector<ir::Node*>& permutable() const { return permutable_; }
  const std::vector<ir::Node*>& transposes() const { return transposes_; }
  const Tensor* find(const ir::Value* value) const;

  // The order in which a tensor is held when the group's is `order`.
  static Order held(const Tensor& tensor, const Order& order);
  // The order of the group that leaves fewer Transposes than there are, or these at better places; nothing where there
  // is none.
  std::optional<Order> better_order() const;

 private:
  bool grow(ir::Node* transpose);  // false: two orders met in a node, which is outside from now on
  bool visit(ir::Value* value, const Order& place);
  bool join(ir::Node* node);
  bool is_inside(const ir::Node* node) const;
  // How many, what they cost, and what with their places: those beside operators of images cost more.
  struct Cost {
    int count = 0, transposes = 0, places = 0;
  };
  Cost cost(const Order& order) const;
  Cost present_cost() const;

  const ir::Graph& graph_;
  std::unordered_set<const ir::Node*> contradictory_;
  std::unordered_set<const ir::Node*> seen_nodes_;
  std::unordered_map<const ir::Value*, size_t> index_;
  std::vector<Tensor> tensors_;
  std::vector<ir::Node*> permutable_, transposes_;
};

}  // namespace octet::passes
