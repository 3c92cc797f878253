#include "tao/write.h"

#include <algorithm>
#include <optional>

#include "tao/paths.h"
#include "tao/text_format.h"
#include "tao/values.h"

namespace octet::tao {
namespace {

using schema::Entry;
using schema::Node;

class Writer {
 public:
  Writer(const Tree& experiment, const std::string& classes) : tree_(experiment) {
    if (const Node* list = tree_.find(parse_path(classes)))
      for (const Node& item : list->items) classes_.push_back(item.text);
  }

  std::string write(const Message& message, const Path& base, const std::string& indent) const {
    std::string out;
    std::vector<std::pair<std::string, Node>> hooked;
    for (const Hook& hook : message.hooks())
      if (hook.write)
        for (auto& field : hook.write(tree_)) hooked.push_back(std::move(field));
    for (const Field& field : message.fields()) {
      for (const auto& [name, value] : hooked)
        if (name == field.name())
          if (const auto token = write_value(field, value)) out += line(indent, name, *token);
      if (field.is_hooked() && field.type() != Type::kMessage) continue;
      if (!field.reason().empty()) continue;
      if (field.type() == Type::kMessage)
        out += messages(field, base, indent);
      else
        out += scalars(field, base, indent);
    }
    return out;
  }

 private:
  static std::string line(const std::string& indent, const std::string& name, const std::string& token) {
    return indent + name + ": " + token + "\n";
  }
  static std::string braces(const std::string& indent, const std::string& name, const std::string& body) {
    return indent + name + " {\n" + body + indent + "}\n";
  }

  // Also what a class has from the section around its own.
  const Node* find(Path path) const {
    while (true) {
      if (const Node* node = tree_.find(path)) return node;
      const auto section = std::find(path.begin(), path.end(), kClassSections);
      if (path.end() - section < 3) return nullptr;
      path.erase(section, section + 2);
    }
  }

  // The names that stand for the "*" at the end of `key`.
  std::vector<std::string> entry_names(const Field& field, const Path& base) const {
    std::vector<std::string> names;
    if (!field.entry_names().empty()) {
      for (const auto& [theirs, ours] : field.entry_names()) names.push_back(ours);
      return names;
    }
    Path section = resolve(field.key(), base);
    section.pop_back();
    if (!section.empty() && section.back() == kClassSections) names = classes_;
    if (const Node* node = tree_.find(section))
      for (const Entry& entry : node->entries)
        if (std::find(names.begin(), names.end(), entry.key) == names.end()) names.push_back(entry.key);
    return names;
  }

  std::string scalars(const Field& field, const Path& base, const std::string& indent) const {
    if (field.key().empty()) return "";
    std::string out;
    if (field.count() == Count::kMap) {
      for (const std::string& name : entry_names(field, base))
        if (const Node* node = find(entry_path(field, base, name)))
          if (const auto token = write_value(field, *node))
            out += braces(indent, field.name(),
                          line(indent + "  ", "key", text_format_string(name)) + line(indent + "  ", "value", *token));
      return out;
    }
    const Node* node = find(resolve(field.key(), base));
    if (!node) return "";
    if (field.count() == Count::kOne) {
      if (const auto token = write_value(field, *node)) out += line(indent, field.name(), *token);
      return out;
    }
    for (const Node& item : node->items)
      if (const auto token = write_value(field, item)) out += line(indent, field.name(), *token);
    return out;
  }

  std::string messages(const Field& field, const Path& base, const std::string& indent) const {
    const std::string inside = indent + "  ";
    std::string out;
    const auto one = [&](const Path& inner, const std::string& before) {
      if (!is_set(field, inner)) return;
      const std::string body = write(field.inner(), inner, inside);
      if (!body.empty()) out += braces(indent, field.name(), before + body);
    };
    if (!field.naming_field().empty()) {
      for (const std::string& name : entry_names(field, base))
        one(resolve_entry(field.key(), base, name),
            line(inside, field.naming_field(), text_format_string(their_name(field, name))));
    } else if (field.count() == Count::kMap) {
      for (const std::string& name : entry_names(field, base)) {
        const std::string body = write(field.inner(), resolve_entry(field.key(), base, name), inside + "  ");
        if (!body.empty())
          out += braces(indent, field.name(),
                        line(inside, "key", text_format_string(name)) + braces(inside, "value", body));
      }
    } else if (field.count() == Count::kList) {
      if (field.key().empty()) return "";
      Path list = resolve(field.key(), base);
      list.pop_back();
      const Node* node = tree_.find(list);
      if (node && node->kind == Node::Kind::kMap) one(list, "");  // a section alone stands for a list of it
      if (node && node->kind == Node::Kind::kList)
        for (size_t i = 0; i < node->items.size(); ++i)
          one(resolve_entry(field.key(), base, "[" + std::to_string(i) + "]"), "");
    } else {
      const Path inner = field.key().empty() ? base : resolve(field.key(), base);
      if (!is_set(field, inner)) return "";
      const std::string body = write(field.inner(), inner, inside);
      if (!body.empty() || !field.set_path().empty()) out += braces(indent, field.name(), body);
    }
    return out;
  }

  // Whether the experiment says what the message stands for by being there.
  bool is_set(const Field& field, const Path& inner) const {
    return field.set_path().empty() || tree_.text(resolve(field.set_path(), inner)) == field.set_value();
  }

  static std::string their_name(const Field& field, const std::string& name) {
    for (const auto& [theirs, ours] : field.entry_names())
      if (ours == name) return theirs;
    return name;
  }

  const Tree& tree_;
  std::vector<std::string> classes_;
};

}  // namespace

std::string write_specification(const Message& message, const Tree& experiment, const std::string& classes) {
  return Writer(experiment, classes).write(message, {}, "");
}

}  // namespace octet::tao
