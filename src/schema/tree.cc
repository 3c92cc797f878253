#include "schema/tree.h"

#include <algorithm>
#include <charconv>

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

// One value on its way to its key.
struct Override {
  const std::string& origin;  // for messages
  const std::string path;
  const Node& value;

  // `node` is what the path names up to `begin`.
  void apply(Node& node, size_t begin) const {
    const bool of_sections =
        node.kind == Node::Kind::kList && !node.items.empty() &&
        std::all_of(node.items.begin(), node.items.end(), [](const Node& n) { return n.kind == Node::Kind::kMap; });
    if (of_sections && begin > 0) {
      for (Node& item : node.items) apply(item, begin);
      return;
    }
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin), key = part.substr(0, part.find('['));
    if (key.empty()) fail_usage(origin, ": the key '", path, "' has an empty part");
    if (node.kind == Node::Kind::kNull) node.kind = Node::Kind::kMap;
    if (node.kind != Node::Kind::kMap)
      fail_usage(origin, ": '", path.substr(0, begin ? begin - 1 : 0), "' is ", describe_node(node), " at ",
                 node.location, ", so it has no key '", key, "'");
    auto it = std::find_if(node.entries.begin(), node.entries.end(), [&](const Entry& e) { return e.key == key; });
    if (it == node.entries.end()) {
      Node empty;
      empty.location = origin;
      node.entries.push_back({key, origin, std::move(empty)});
      it = std::prev(node.entries.end());
    }
    Node& found = key == part ? it->value : item(it->value, begin + key.size(), end);
    if (end < path.size()) return apply(found, end + 1);
    if (key == part) it->location = origin;
    found = value;
  }

  // The one of a list that the path names from `bracket` to `end`: "[2]".
  Node& item(Node& list, size_t bracket, size_t end) const {
    const std::string name = path.substr(0, bracket), index = path.substr(bracket, end - bracket);
    size_t number = 0;
    const char *const first = index.data() + 1, *const last = index.data() + index.size() - 1;
    const auto [stop, error] = std::from_chars(first, std::max(first, last), number);
    if (error != std::errc() || stop != last || *last != ']')
      fail_usage(origin, ": '", index, "' is no place in a list; expected a number in brackets, as in ", name, "[0]");
    if (list.kind != Node::Kind::kList) fail_usage(origin, ": '", name, "' is ", describe_node(list), ", no list");
    if (number >= list.items.size())
      fail_usage(origin, ": '", name, "' is a list of ", list.items.size(), " at ", list.location, ", counted from 0");
    return list.items[number];
  }
};

}  // namespace

std::string dotted(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

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
  // Positions inside so short a text help nobody: every node of it is said to be at the override.
  Node value = parse_yaml(assignment.substr(equals + 1), origin);
  relocate(value, origin);
  Override{origin, assignment.substr(0, equals), value}.apply(root, 0);
}

}  // namespace octet::schema
