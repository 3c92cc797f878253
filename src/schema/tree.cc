#include "schema/tree.h"

#include <algorithm>

#include "base/error.h"

namespace octet::schema {
namespace {

void relocate(Node& node, const std::string& location) {
  node.location = location;
  for (Node& item : node.items) relocate(item, location);
  for (Entry& entry : node.entries) {
    entry.location = location;
    relocate(entry.value, location);
  }
}

}  // namespace

std::string shortened(const std::string& text) {
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not in the middle of a character
  return text.substr(0, end) + "...";
}

const Node* Node::find(std::string_view key) const {
  const auto it = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return it == entries.end() ? nullptr : &it->value;
}

std::string describe_node(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return str(node.quoted ? "the text '" : "'", shortened(node.text), "'");
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a section";
  }
  return "";
}

void apply_override(Node& root, const std::string& assignment) {
  const std::string origin = str("--set ", assignment);
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    fail_usage(origin, ": expected KEY=VALUE, as in --set train.epochs=3");
  const std::string path = assignment.substr(0, equals);
  // Positions inside so short a text help nobody: every node of it is said to be at the override.
  Node value = parse_yaml(assignment.substr(equals + 1), origin);
  relocate(value, origin);

  Node* node = &root;
  for (size_t begin = 0;;) {
    const size_t end = path.find('.', begin);
    const std::string key = path.substr(begin, end == std::string::npos ? end : end - begin);
    if (key.empty()) fail_usage(origin, ": the key '", path, "' has an empty part");
    if (node->kind == Node::Kind::kNull) node->kind = Node::Kind::kMap;
    if (node->kind != Node::Kind::kMap)
      fail_usage(origin, ": '", path.substr(0, begin ? begin - 1 : 0), "' is ", describe_node(*node), " at ",
                 node->location, ", so it has no key '", key, "'");
    auto it = std::find_if(node->entries.begin(), node->entries.end(), [&](const Entry& e) { return e.key == key; });
    if (it == node->entries.end()) {
      Node empty;
      empty.location = origin;
      node->entries.push_back({key, origin, std::move(empty)});
      it = std::prev(node->entries.end());
    }
    node = &it->value;
    if (end == std::string::npos) {
      it->location = origin;
      *node = std::move(value);
      return;
    }
    begin = end + 1;
  }
}

}  // namespace octet::schema
