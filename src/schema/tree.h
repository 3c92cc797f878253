// A parsed spec before it has meaning: maps, lists and scalars that know where they stand in the file.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::schema {

struct Entry;

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string location;        // "spec.yaml:12:3", or the override it came from
  std::string text;            // scalar
  bool quoted = false;         // scalar: written in quotes, so certainly text
  std::vector<Node> items;     // list
  std::vector<Entry> entries;  // map, in the file's order, keys unique

  const Node* find(std::string_view key) const;  // map; nullptr when absent
};

struct Entry {
  std::string key;
  std::string location;  // of the key
  Node value;
};

// The place of `key` in the section `path`: "train.optimizer", or the key alone at the top.
std::string dotted(const std::string& path, const std::string& key);

// For messages: enough of a long text to recognize it.
std::string shortened(const std::string& text);

// "a list", "the text 'abc'", ... for messages.
std::string describe_node(const Node& node);

// Parses one YAML document; an empty one is an empty map. `name` stands for the file in locations and messages.
// UserError (exit 2) for syntax errors, duplicate keys, keys that are not plain text, bytes that are not UTF-8, more
// than one document, and for files that are too large, too deep or multiply themselves through aliases.
Node parse_yaml(std::string_view text, const std::string& name);

// Text as YAML: plain where it cannot be taken for anything else, else in double quotes.
std::string yaml_text(const std::string& text);

// A map as YAML that reads back as the same tree.
std::string write_yaml(const Node& map);

// Applies "train.optimizer.lr=0.01" to the tree; the value is YAML. Behind a list of sections a key is set in each of
// them, "data.train.limit=100", or in the one that a number in brackets chooses, "data.train[1].limit=100". UserError
// (exit 2) when it is malformed, goes through something that is not a section, or chooses an item that there is not.
void apply_override(Node& root, const std::string& assignment);

}  // namespace octet::schema
