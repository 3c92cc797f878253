// An experiment as a tree (schema/tree.h), of which single keys are read and set.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "schema/tree.h"

namespace octet::tao {

// The way to a key: names of sections, and items of lists as "[0]". Names may have points in them, as classes do.
using Path = std::vector<std::string>;

// "train.optimizer.betas[1]"; "data.train[]" has the item "[]".
Path parse_path(std::string_view text);

class Tree {
 public:
  Tree() { root_.kind = schema::Node::Kind::kMap; }
  explicit Tree(schema::Node root) : root_(std::move(root)) {}

  // Makes the sections and lists on the way, which are said to be where the value is. Items of lists that are skipped
  // are empty. `location` is that of the key.
  void set(const Path& path, schema::Node value, const std::string& location);
  // Says where the key is, if it is there; not that of an item of a list.
  void locate(const Path& path, const std::string& location);
  // Takes a key out of its section, if it is there.
  void erase(const Path& path);
  // nullptr where there is none, or an empty one.
  const schema::Node* find(const Path& path) const;
  // The text of a scalar, or "" where there is none.
  std::string text(const Path& path) const;

  schema::Node& root() { return root_; }
  const schema::Node& root() const { return root_; }

 private:
  schema::Node* section_of(const Path& path);
  schema::Node root_;
};

// A scalar, for values that stand in no file.
schema::Node scalar(std::string text, bool quoted, std::string location);

}  // namespace octet::tao
