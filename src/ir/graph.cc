#include "ir/graph.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "ir/infer.h"

namespace octet::ir {
namespace {

template <typename T>
const T* attribute(const Node& node, const std::string& key, const char* type) {
  const auto it = node.attributes.find(key);
  if (it == node.attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (!value) fail("node '", node.name, "' (", node.info().name, "): attribute ", key, " has another type than ", type);
  return value;
}

const std::string* default_of(const Node& node, const std::string& key) {
  const AttributeInfo* info = node.info().find_attribute(key);
  return info && !info->default_text.empty() ? &info->default_text : nullptr;
}

// The last entry of several, so that taking a node's uses away from the last on costs nothing per use.
void remove_one(std::vector<Node*>& users, Node* node) {
  const auto it = std::find(users.rbegin(), users.rend(), node);
  OCTET_CHECK(it != users.rend(), "user list of a value of node ", node->name);
  users.erase(std::prev(it.base()));
}

}  // namespace

int64_t Node::get_int(const std::string& key, int64_t fallback) const {
  if (const auto* v = attribute<int64_t>(*this, key, "int")) return *v;
  if (const auto* text = default_of(*this, key)) return std::stoll(*text);
  return fallback;
}

float Node::get_float(const std::string& key, float fallback) const {
  if (const auto* v = attribute<float>(*this, key, "float")) return *v;
  if (const auto* text = default_of(*this, key)) return std::stof(*text);
  return fallback;
}

std::string Node::get_string(const std::string& key, const std::string& fallback) const {
  if (const auto* v = attribute<std::string>(*this, key, "string")) return *v;
  if (const auto* text = default_of(*this, key)) return *text;
  return fallback;
}

std::vector<int64_t> Node::get_ints(const std::string& key, std::vector<int64_t> fallback) const {
  const auto* v = attribute<std::vector<int64_t>>(*this, key, "ints");
  return v && !v->empty() ? *v : fallback;
}

Graph Graph::clone() const {
  Graph copy;
  copy.name = name;
  copy.opset = opset;
  copy.metadata = metadata;
  copy.program = program;
  std::unordered_map<const Value*, Value*> twin;
  for (const auto& v : values_) {
    Value* w = copy.new_value(v->name);
    w->type = v->type;
    w->constant = v->constant;
    w->trainable = v->trainable;
    twin[v.get()] = w;
  }
  const auto map = [&](const Value* v) { return v ? twin.at(v) : nullptr; };
  for (const auto& n : nodes_) {
    copy.nodes_.push_back(std::make_unique<Node>());
    Node* m = copy.nodes_.back().get();
    copy.position_[m] = std::prev(copy.nodes_.end());
    copy.nodes_by_name_[n->name] = m;
    m->kind = n->kind;
    m->name = n->name;
    m->attributes = n->attributes;
    for (const Value* v : n->inputs) {
      m->inputs.push_back(map(v));
      if (v) m->inputs.back()->users.push_back(m);
    }
    for (const Value* v : n->outputs) {
      m->outputs.push_back(map(v));
      if (v) m->outputs.back()->producer = m;
    }
  }
  for (const Value* v : inputs_) copy.inputs_.push_back(map(v));
  for (const Value* v : outputs_) copy.add_output(map(v));
  return copy;
}

Value* Graph::new_value(const std::string& wanted) {
  const std::string unique = wanted.empty() ? unique_name("value") : wanted;
  if (values_by_name_.count(unique)) fail("graph '", name, "': two values are named '", unique, "'");
  values_.push_back(std::make_unique<Value>());
  Value* value = values_.back().get();
  value->name = unique;
  value_position_[value] = std::prev(values_.end());
  values_by_name_[unique] = value;
  return value;
}

void Graph::erase_value(Value* value) {
  OCTET_CHECK(value->users.empty() && !is_output(value), "value ", value->name, " is still used");
  values_by_name_.erase(value->name);
  forget_name(value->name);
  const auto at = value_position_.at(value);
  value_position_.erase(value);
  values_.erase(at);
}

Value* Graph::add_input(const std::string& input_name, TensorType type) {
  Value* value = new_value(input_name);
  value->type = std::move(type);
  inputs_.push_back(value);
  return value;
}

Value* Graph::add_constant(const std::string& constant_name, Tensor tensor, bool trainable) {
  Value* value = new_value(constant_name.empty() ? unique_name("constant") : constant_name);
  value->type = {tensor.data_type(), tensor.shape()};
  value->constant = std::move(tensor);
  value->trainable = trainable;
  return value;
}

Node* Graph::add_node(OpKind kind, const std::string& wanted, std::vector<Value*> node_inputs,
                      std::vector<std::string> output_names, Attributes attributes, Node* before) {
  auto owned = std::make_unique<Node>();
  Node* node = owned.get();
  node->kind = kind;
  node->name = wanted.empty() ? unique_name(op_info(kind).name) : wanted;
  if (nodes_by_name_.count(node->name)) fail("graph '", name, "': two nodes are named '", node->name, "'");
  nodes_by_name_[node->name] = node;
  node->attributes = std::move(attributes);
  node->inputs = std::move(node_inputs);
  for (Value* v : node->inputs)
    if (v) v->users.push_back(node);
  for (const std::string& output_name : output_names) {
    Value* value = new_value(output_name);
    value->producer = node;
    node->outputs.push_back(value);
  }
  const auto at = before ? position_.at(before) : nodes_.end();
  position_[node] = nodes_.insert(at, std::move(owned));
  return node;
}

Value* Graph::add(OpKind kind, const std::string& wanted, std::vector<Value*> node_inputs, Attributes attributes,
                  Node* before) {
  const std::string unique = wanted.empty() ? unique_name(op_info(kind).name) : wanted;
  Node* node = add_node(kind, unique, std::move(node_inputs), {unique}, std::move(attributes), before);
  infer_node(*node);
  return node->output();
}

void Graph::add_output(Value* value) {
  OCTET_CHECK(value != nullptr);
  outputs_.push_back(value);
  ++output_uses_[value];
}

void Graph::set_output_value(size_t index, Value* value) {
  Value*& output = outputs_.at(index);
  if (--output_uses_[output] == 0) output_uses_.erase(output);
  output = value;
  ++output_uses_[value];
}

void Graph::set_input(Node* node, size_t index, Value* value) {
  if (index >= node->inputs.size()) node->inputs.resize(index + 1, nullptr);
  if (Value* old = node->inputs[index]) remove_one(old->users, node);
  node->inputs[index] = value;
  if (value) value->users.push_back(node);
}

void Graph::replace_uses(Value* from, Value* to, bool keep_outputs, const Node* except) {
  OCTET_CHECK(from != to);
  std::vector<Node*> kept;
  std::unordered_set<const Node*> seen;
  for (Node* user : from->users) {
    (user == except ? kept : to->users).push_back(user);
    if (user != except && seen.insert(user).second) std::replace(user->inputs.begin(), user->inputs.end(), from, to);
  }
  from->users = std::move(kept);
  if (keep_outputs || !is_output(from)) return;
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i] == from) set_output_value(i, to);
}

void Graph::set_constant(Value* value, Tensor tensor) {
  OCTET_CHECK(value->is_constant(), value->name, " is not a constant");
  value->type = {tensor.data_type(), tensor.shape()};
  value->constant = std::move(tensor);
}

void Graph::erase(Node* node) {
  for (const Value* v : node->outputs)  // before anything changes
    OCTET_CHECK(!v || (v->users.empty() && !is_output(v)), "output ", v->name, " of node ", node->name, " is in use");
  for (size_t i = node->inputs.size(); i > 0; --i) set_input(node, i - 1, nullptr);
  for (Value* v : node->outputs)
    if (v) erase_value(v);
  nodes_by_name_.erase(node->name);
  forget_name(node->name);
  const auto it = position_.at(node);
  position_.erase(node);
  nodes_.erase(it);
}

int Graph::remove_dead() {
  int removed = 0;
  for (auto it = nodes_.end(); it != nodes_.begin();) {
    --it;
    Node* node = it->get();
    const bool live = std::any_of(node->outputs.begin(), node->outputs.end(),
                                  [&](const Value* v) { return v && (!v->users.empty() || is_output(v)); });
    if (live) continue;
    ++it;
    erase(node);
    ++removed;
  }
  std::vector<Value*> unused;
  for (const auto& v : values_)
    if (v->is_constant() && v->users.empty() && !is_output(v.get())) unused.push_back(v.get());
  for (Value* v : unused) erase_value(v);
  return removed + static_cast<int>(unused.size());
}

void Graph::rename(Value* value, const std::string& new_name) {
  if (value->name == new_name) return;
  if (values_by_name_.count(new_name)) fail("graph '", name, "': two values are named '", new_name, "'");
  values_by_name_.erase(value->name);
  forget_name(value->name);
  value->name = new_name;
  values_by_name_[new_name] = value;
}

void Graph::rename(Node* node, const std::string& new_name) {
  if (node->name == new_name) return;
  if (nodes_by_name_.count(new_name)) fail("graph '", name, "': two nodes are named '", new_name, "'");
  nodes_by_name_.erase(node->name);
  forget_name(node->name);
  node->name = new_name;
  nodes_by_name_[new_name] = node;
}

void Graph::erase_input(Value* value) {
  const auto it = std::find(inputs_.begin(), inputs_.end(), value);
  OCTET_CHECK(it != inputs_.end(), value->name);
  inputs_.erase(it);
  erase_value(value);
}

void Graph::sort_topologically() {
  std::unordered_map<const Node*, size_t> missing;
  std::unordered_map<const Node*, size_t> rank;
  const auto later = [&](Node* a, Node* b) { return rank[a] > rank[b]; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  size_t next = 0;
  for (const auto& n : nodes_) {
    rank[n.get()] = next++;
    size_t count = 0;
    for (const Value* v : n->inputs) count += v && v->producer;
    missing[n.get()] = count;
  }
  for (const auto& n : nodes_)
    if (missing[n.get()] == 0) ready.push(n.get());
  std::list<std::unique_ptr<Node>> sorted;
  while (!ready.empty()) {
    Node* node = ready.top();
    ready.pop();
    sorted.splice(sorted.end(), nodes_, position_.at(node));
    for (const Value* v : node->outputs)
      if (v)
        for (Node* user : v->users)
          if (--missing[user] == 0) ready.push(user);
  }
  if (!nodes_.empty()) {
    const std::string stuck = nodes_.front()->name;
    nodes_.splice(nodes_.begin(), sorted);
    fail("graph '", name, "': node '", stuck, "' depends on its own output (a cycle)");
  }
  nodes_ = std::move(sorted);
  for (auto it = nodes_.begin(); it != nodes_.end(); ++it) position_[it->get()] = it;
}

std::vector<Value*> Graph::values() const {
  std::vector<Value*> out;
  for (const auto& v : values_) out.push_back(v.get());
  return out;
}

std::vector<Value*> Graph::constants() const {
  std::vector<Value*> out;
  for (const auto& v : values_)
    if (v->is_constant()) out.push_back(v.get());
  return out;
}

Value* Graph::find_value(const std::string& value_name) const {
  const auto it = values_by_name_.find(value_name);
  return it == values_by_name_.end() ? nullptr : it->second;
}

Node* Graph::find_node(const std::string& node_name) const {
  const auto it = nodes_by_name_.find(node_name);
  return it == nodes_by_name_.end() ? nullptr : it->second;
}

Node* Graph::next(const Node* node) const {
  const auto it = std::next(position_.at(node));
  return it == nodes_.end() ? nullptr : it->get();
}

std::string Graph::unique_name(const std::string& prefix) const {
  if (!prefix.empty() && !is_taken(prefix)) return prefix;
  int& i = first_free_.try_emplace(prefix, 1).first->second;
  for (;; ++i) {
    std::string candidate = prefix + "_" + std::to_string(i);
    if (!is_taken(candidate)) return candidate;
  }
}

void Graph::forget_name(const std::string& old) {
  const size_t digits = old.find_last_not_of("0123456789") + 1;
  if (is_taken(old) || digits == 0 || old[digits - 1] != '_' || old.size() - digits > 9 || digits == old.size()) return;
  const auto it = first_free_.find(old.substr(0, digits - 1));
  if (it != first_free_.end()) it->second = std::min(it->second, std::max(1, std::stoi(old.substr(digits))));
}

}  // namespace octet::ir
