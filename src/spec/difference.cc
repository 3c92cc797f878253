// Two experiments, key by key. Both are written as YAML and compared as trees, so that every key of the schema is
// covered.
#include "schema/tree.h"
#include "spec/experiment.h"

namespace octet::spec {
namespace {

using schema::Entry;
using schema::Node;

std::string text_of(const Node* node) {
  if (!node || node->kind == Node::Kind::kNull) return "absent";
  if (node->kind == Node::Kind::kScalar) return node->text.empty() ? "\"\"" : node->text;
  std::string out;
  for (const Node& item : node->items) out += (out.empty() ? "" : ", ") + text_of(&item);
  for (const Entry& entry : node->entries) out += (out.empty() ? "" : ", ") + entry.key + ": " + text_of(&entry.value);
  return node->kind == Node::Kind::kMap ? "{" + out + "}" : "[" + out + "]";
}

void compare(const Node* before, const Node* after, const std::string& path, std::vector<KeyDifference>& out) {
  const auto both_are = [&](Node::Kind kind) { return before && after && before->kind == kind && after->kind == kind; };
  if (both_are(Node::Kind::kList) && before->items.size() == after->items.size() && !before->items.empty() &&
      before->items[0].kind == Node::Kind::kMap) {
    for (size_t i = 0; i < before->items.size(); ++i)
      compare(&before->items[i], &after->items[i], path + "[" + std::to_string(i) + "]", out);
    return;
  }
  if (!both_are(Node::Kind::kMap)) {
    const std::string was = text_of(before), is = text_of(after);
    if (was != is) out.push_back({path, was, is});
    return;
  }
  const auto path_of = [&](const Entry& entry) { return path.empty() ? entry.key : path + "." + entry.key; };
  for (const Entry& entry : before->entries) compare(&entry.value, after->find(entry.key), path_of(entry), out);
  for (const Entry& entry : after->entries)
    if (!before->find(entry.key)) compare(nullptr, &entry.value, path_of(entry), out);
}

}  // namespace

std::vector<KeyDifference> differences(const ExperimentSpec& before, const ExperimentSpec& after, Stage stage) {
  return differences(relevant_to(before, stage), relevant_to(after, stage));
}

std::vector<KeyDifference> differences(const ExperimentSpec& before, const ExperimentSpec& after) {
  const Node was = schema::parse_yaml(to_yaml(before), "before");
  const Node is = schema::parse_yaml(to_yaml(after), "after");
  std::vector<KeyDifference> out;
  compare(&was, &is, "", out);
  return out;
}

}  // namespace octet::spec
