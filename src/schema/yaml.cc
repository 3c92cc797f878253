// YAML text to tree, through yaml-cpp's events: the tree keeps positions, duplicate keys are seen, and limits hold
// before anything is built.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "schema/source_text.h"
#include "schema/tree.h"

namespace octet::schema {
namespace {

// yaml-cpp is given printable text only: its scanner was not made for arbitrary bytes. Flow brackets are counted here
// because its work grows with the square of their depth.
void check_text(std::string_view text, const std::string& name) {
  require_printable_text(text, name, "YAML");
  int line = 1, column = 1, depth = 0;
  for (size_t i = 0; i < text.size(); i += utf8_length(text, i)) {
    const char c = text[i];
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > 4 * kDeepestNesting) fail_usage(place_in(name, line, column), ": brackets are nested too deeply");
    ++column;
    if (c == '\n') line++, column = 1;
  }
}

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& name) : name_(name) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(leaf(Node::Kind::kNull, mark), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = leaf(Node::Kind::kScalar, mark);
    if (tag != "?" && tag != "!" && !tag.empty())
      fail_usage(node.location, ": the tag '", shortened(tag), "' means nothing here; leave it out");
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const std::string location = locate(mark);
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) fail_usage(location, ": the alias refers to something that is not complete yet");
    count(it->second.second, location);
    Node copy = it->second.first;
    copy.location = location;
    place_node(std::move(copy), it->second.second);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(leaf(Node::Kind::kList, mark), anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(leaf(Node::Kind::kMap, mark), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  // A list or map that is being read.
  struct Level {
    Node node;
    YAML::anchor_t anchor;
    size_t nodes = 1;  // of the subtree, itself included
    bool has_key = false;
    std::string key, key_location;
    std::map<std::string, std::string> seen;  // key -> its location
  };

  std::string locate(const YAML::Mark& mark) const { return place_in(name_, mark.line + 1, mark.column + 1); }
  Node leaf(Node::Kind kind, const YAML::Mark& mark) const {
    Node node;
    node.kind = kind;
    node.location = locate(mark);
    return node;
  }
  void count(size_t nodes, const std::string& location) {
    total_ += nodes;
    if (total_ > kMostNodes) fail_usage(location, ": the file has more than ", kMostNodes, " entries, aliases counted");
  }
  void open(Node node, YAML::anchor_t anchor) {
    count(1, node.location);
    if (levels_.size() >= static_cast<size_t>(kDeepestNesting))
      fail_usage(node.location, ": sections and lists are nested more than ", kDeepestNesting, " deep");
    if (!levels_.empty() && levels_.back().node.kind == Node::Kind::kMap && !levels_.back().has_key)
      fail_usage(node.location, ": a key must be plain text, not a list or a section");
    levels_.push_back({std::move(node), anchor});
  }
  void close() {
    OCTET_CHECK(!levels_.empty());
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (level.anchor != 0) {
      count(level.nodes, level.node.location);  // the copy that is kept for aliases
      anchors_[level.anchor] = {level.node, level.nodes};
    }
    place_node(std::move(level.node), level.nodes);
  }
  void add(Node node, YAML::anchor_t anchor) {
    count(1, node.location);
    if (anchor != 0) anchors_[anchor] = {node, 1};
    place_node(std::move(node), 1);
  }
  // Puts a finished node where it belongs: the root, the next item, the next key or its value.
  void place_node(Node node, size_t nodes) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    level.nodes += nodes;
    if (level.node.kind == Node::Kind::kList) {
      level.node.items.push_back(std::move(node));
    } else if (!level.has_key) {
      if (node.kind != Node::Kind::kScalar) fail_usage(node.location, ": a key must be plain text");
      if (node.text == "<<" && !node.quoted)
        fail_usage(node.location, ": merge keys ('<<') are not supported; write the keys out");
      const auto [it, is_new] = level.seen.emplace(node.text, node.location);
      if (!is_new)
        fail_usage(node.location, ": the key '", shortened(node.text), "' was given before, at ", it->second);
      level.has_key = true;
      level.key = node.text;
      level.key_location = node.location;
    } else {
      level.node.entries.push_back({std::move(level.key), std::move(level.key_location), std::move(node)});
      level.has_key = false;
    }
  }

  std::string name_;
  Node root_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, std::pair<Node, size_t>> anchors_;  // with the size of the subtree
  size_t total_ = 0;
};

}  // namespace

Node parse_yaml(std::string_view text, const std::string& name) {
  check_text(text, name);
  std::istringstream in{std::string(text)};
  TreeBuilder builder(name), extra(name);
  try {
    YAML::Parser parser(in);
    parser.HandleNextDocument(builder);
    if (parser.HandleNextDocument(extra)) {
      const Node second = extra.take();
      fail_usage(second.location.empty() ? name : second.location,
                 ": a second document begins here; an experiment file has one");
    }
  } catch (const YAML::Exception& e) {
    std::string reason = e.msg;
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    fail_usage(e.mark.is_null() ? name : place_in(name, e.mark.line + 1, e.mark.column + 1),
               ": not valid YAML: ", reason);
  }
  Node root = builder.take();
  if (root.location.empty()) root.location = place_in(name, 1, 1);
  return root;
}

}  // namespace octet::schema
