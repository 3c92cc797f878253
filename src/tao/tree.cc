#include "tao/tree.h"

#include <algorithm>

#include "base/error.h"

namespace octet::tao {
namespace {

using schema::Node;

bool is_item(const std::string& step) {
  return step.size() > 2 && step.front() == '[';
}
size_t item_of(const std::string& step) {
  return static_cast<size_t>(std::stoul(step.substr(1)));
}

}  // namespace

Path parse_path(std::string_view text) {
  Path path;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find_first_of(".[", begin + 1), text.size());
    if (text[begin] == '[') end = std::min(text.find(']', begin), text.size() - 1) + 1;
    path.emplace_back(text.substr(begin, end - begin));
    begin = end;
    if (begin < text.size() && text[begin] == '.') ++begin;
  }
  return path;
}

void Tree::set(const Path& path, Node value, const std::string& location) {
  Node* node = &root_;
  std::string* key_location = nullptr;
  for (const std::string& step : path) {
    if (node->location.empty()) node->location = value.location;
    if (is_item(step)) {
      OCTET_CHECK(node->kind == Node::Kind::kList || node->kind == Node::Kind::kNull, step);
      node->kind = Node::Kind::kList;
      const size_t item = item_of(step);
      if (node->items.size() <= item) node->items.resize(item + 1);
      node = &node->items[item];
      key_location = nullptr;
      continue;
    }
    OCTET_CHECK(node->kind == Node::Kind::kMap || node->kind == Node::Kind::kNull, step);
    node->kind = Node::Kind::kMap;
    auto it = std::find_if(node->entries.begin(), node->entries.end(), [&](const auto& e) { return e.key == step; });
    if (it == node->entries.end()) it = node->entries.insert(it, {step, location, {}});
    node = &it->value;
    key_location = &it->location;
  }
  if (key_location) *key_location = location;
  *node = std::move(value);
}

void Tree::locate(const Path& path, const std::string& location) {
  if (Node* section = section_of(path))
    for (schema::Entry& entry : section->entries)
      if (entry.key == path.back()) entry.location = location;
}

void Tree::erase(const Path& path) {
  if (Node* section = section_of(path))
    std::erase_if(section->entries, [&](const schema::Entry& e) { return e.key == path.back(); });
}

// The section that the last step is a key of; nullptr where there is none.
Node* Tree::section_of(const Path& path) {
  Node* node = &root_;
  for (size_t i = 0; node && i + 1 < path.size(); ++i) {
    Node* next = nullptr;
    for (schema::Entry& entry : node->entries)
      if (entry.key == path[i]) next = &entry.value;
    node = next;
  }
  return node;
}

const Node* Tree::find(const Path& path) const {
  const Node* node = &root_;
  for (const std::string& step : path) {
    if (is_item(step)) {
      const size_t item = item_of(step);
      if (node->kind != Node::Kind::kList || item >= node->items.size()) return nullptr;
      node = &node->items[item];
    } else {
      node = node->find(step);
    }
    if (!node || node->kind == Node::Kind::kNull) return nullptr;
  }
  return node;
}

std::string Tree::text(const Path& path) const {
  const Node* node = find(path);
  return node && node->kind == Node::Kind::kScalar ? node->text : "";
}

schema::Node scalar(std::string text, bool quoted, std::string location) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.text = std::move(text);
  node.quoted = quoted;
  node.location = std::move(location);
  return node;
}

}  // namespace octet::tao
