#include "tao/read.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "schema/schema.h"
#include "tao/paths.h"
#include "tao/values.h"

namespace octet::tao {
namespace {

using schema::Entry;
using schema::Node;

class Reader {
 public:
  explicit Reader(const Message& root) : root_(root) {}

  // `path` names the message for people, `kind` does without the names of entries; `base` is the key it stands for.
  void read(const Message& message, const Node& node, const std::string& path, const std::string& kind,
            const Path& base) {
    require_message(node, path);
    check_fields(message, node, path);
    for (const Field& field : message.fields()) {
      std::vector<const Entry*> entries;
      for (const Entry& entry : node.entries)
        if (entry.key == field.name()) entries.push_back(&entry);
      if (entries.empty())
        leave_open(field, node, path, base);
      else
        read_field(field, entries, dotted(path, field.name()), dotted(kind, field.name()), base);
    }
    for (const Hook& hook : message.hooks()) hook.read(node, tree_, unused_);
  }

  Experiment take() { return {std::move(tree_.root()), std::move(unused_)}; }

 private:
  static std::string dotted(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
  }
  static std::string quoted(const std::string& path) { return path.empty() ? "the file" : "'" + path + "'"; }

  static void require_message(const Node& node, const std::string& path) {
    if (node.kind != Node::Kind::kMap)
      fail_usage(node.location, ": '", path, "' takes a message in braces, found ", describe_node(node));
  }

  void check_fields(const Message& message, const Node& node, const std::string& path) const {
    std::map<std::string, const Entry*> seen;   // fields that may stand there once
    std::map<std::string, const Entry*> group;  // fields that exclude each other
    for (const Entry& entry : node.entries) {
      const Field* field = message.find(entry.key);
      if (!field) refuse_field(message, entry, path);
      if (field->count() == Count::kOne) {
        const auto [it, is_new] = seen.emplace(entry.key, &entry);
        if (!is_new)
          fail_usage(entry.location, ": the field '", dotted(path, entry.key), "' was given before, at ",
                     it->second->location);
      }
      if (field->group().empty()) continue;
      const auto [it, is_new] = group.emplace(field->group(), &entry);
      if (!is_new && it->second->key != entry.key)
        fail_usage(entry.location, ": '", dotted(path, entry.key), "' excludes '", it->second->key, "', which is at ",
                   it->second->location, "; take one of them out");
    }
  }

  [[noreturn]] void refuse_field(const Message& message, const Entry& entry, const std::string& path) const {
    std::string hint = did_you_mean(entry.key, message.field_names());
    if (hint.empty()) {
      const std::string home = find_home(root_, "", entry.key);
      if (!home.empty()) hint = str("; it belongs in ", home);
    }
    if (hint.empty()) hint = str("; known fields: ", schema::join(message.field_names(), ", "));
    fail_usage(entry.location, ": unknown field '", schema::shortened(entry.key), "' in ", quoted(path), hint);
  }

  // The outermost message that has the field.
  static std::string find_home(const Message& message, const std::string& path, const std::string& name) {
    if (message.find(name)) return quoted(path);
    for (const Field& field : message.fields())
      if (field.type() == Type::kMessage)
        if (std::string home = find_home(field.inner(), dotted(path, field.name()), name); !home.empty()) return home;
    return "";
  }

  // The field is not in the file.
  void leave_open(const Field& field, const Node& message, const std::string& path, const Path& base) {
    if (field.is_required())
      fail_usage(message.location, ": the field '", field.name(), "' is missing in ", quoted(path), ": ",
                 field.meaning());
    if (field.otherwise().empty()) return;
    Node token = scalar(field.otherwise(), field.type() == Type::kText, message.location);
    set(field, resolve(field.key(), base), read_value(field, token, dotted(path, field.name())), message.location);
  }

  void read_field(const Field& field, const std::vector<const Entry*>& entries, const std::string& path,
                  const std::string& kind, const Path& base) {
    std::set<std::string> names;
    bool same = !field.same().empty();
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = *entries[i];
      if (field.count() == Count::kMap)
        read_entry(field, entry, path, kind, base, names);
      else if (field.type() == Type::kMessage)
        read_message(field, entry, i, path, kind, base, names);
      else {
        const Node value = read_value(field, entry.value, path);
        same = same && value.text == field.same();
        const std::string item = field.count() == Count::kList ? str("[", i, "]") : "";
        if (!field.key().empty() && !field.is_hooked())
          set(field, resolve(field.key() + item, base), value, entry.location);
      }
    }
    if (!field.reason().empty() && !same) note(field, *entries[0], kind);
  }

  void read_message(const Field& field, const Entry& entry, size_t index, const std::string& path,
                    const std::string& kind, const Path& base, std::set<std::string>& names) {
    require_message(entry.value, path);
    std::string shown = path;
    Path inner = base;
    if (!field.naming_field().empty()) {
      const std::string name = name_of(field, entry, path);
      require_new(names, name, entry, path);
      shown += "{" + name + "}";
      if (!field.key().empty()) inner = resolve_entry(field.key(), base, key_for(field, name, entry, path));
    } else if (!field.key().empty()) {
      inner = field.count() == Count::kList ? resolve_entry(field.key(), base, str("[", index, "]"))
                                            : resolve(field.key(), base);
    }
    if (!field.set_path().empty())
      tree_.set(resolve(field.set_path(), inner), scalar(field.set_value(), false, entry.location), entry.location);
    read(field.inner(), entry.value, shown, kind, inner);
  }

  // One of { key: "car" value: ... }.
  void read_entry(const Field& field, const Entry& entry, const std::string& path, const std::string& kind,
                  const Path& base, std::set<std::string>& names) {
    require_message(entry.value, path);
    const Entry *key = nullptr, *value = nullptr;
    for (const Entry& part : entry.value.entries) {
      const Entry*& place = part.key == "key" ? key : value;
      if (part.key != "key" && part.key != "value")
        fail_usage(part.location, ": an entry of the map '", path, "' has the fields key and value, found '",
                   schema::shortened(part.key), "'", did_you_mean(part.key, {"key", "value"}));
      if (place)
        fail_usage(part.location, ": the ", part.key, " of this entry of '", path, "' was given before, at ",
                   place->location);
      place = &part;
    }
    if (!key || !value)
      fail_usage(entry.value.location, ": an entry of the map '", path, "' needs a ", key ? "value" : "key");
    if (key->value.kind != Node::Kind::kScalar || !key->value.quoted || key->value.text.empty())
      fail_usage(key->value.location, ": the key of an entry of '", path, "' is a text in quotes, found ",
                 describe_node(key->value));
    const std::string name = key->value.text, shown = path + "{" + name + "}";
    require_new(names, name, *key, path);
    if (field.type() == Type::kMessage) {
      const bool is_default = !field.default_name().empty() && name == field.default_name();
      const Path inner = is_default            ? parse_path(field.default_path())
                         : field.key().empty() ? base
                                               : resolve_entry(field.key(), base, name);
      read(field.inner(), value->value, shown, kind, inner);
      if (!field.key().empty()) tree_.locate(inner, key->value.location);
    } else {
      const Node converted = read_value(field, value->value, shown);
      if (!field.key().empty() && !field.is_hooked())
        tree_.set(entry_path(field, base, name), converted, key->value.location);
    }
  }

  static std::string name_of(const Field& field, const Entry& entry, const std::string& path) {
    const Node* name = entry.value.find(field.naming_field());
    if (!name || name->kind != Node::Kind::kScalar || name->text.empty())
      fail_usage(entry.value.location, ": an entry of '", path, "' needs a ", field.naming_field());
    return name->text;
  }
  static std::string key_for(const Field& field, const std::string& name, const Entry& entry, const std::string& path) {
    if (field.entry_names().empty()) return name;
    std::vector<std::string> known;
    for (const auto& [theirs, ours] : field.entry_names()) {
      if (theirs == name) return ours;
      known.push_back(theirs);
    }
    fail_usage(entry.value.find(field.naming_field())->location, ": the ", field.naming_field(), " of an entry of '",
               path, "' is one of ", schema::join(known, ", "), "; found '", schema::shortened(name), "'",
               did_you_mean(name, known));
  }
  static void require_new(std::set<std::string>& names, const std::string& name, const Entry& entry,
                          const std::string& path) {
    if (!names.insert(name).second)
      fail_usage(entry.location, ": '", path, "' has two entries for '", schema::shortened(name), "'");
  }

  void set(const Field& field, const Path& path, const Node& value, const std::string& location) {
    tree_.set(path, value, location);
    if (!field.also().empty()) tree_.set(parse_path(field.also()), value, location);
  }
  void note(const Field& field, const Entry& entry, const std::string& kind) {
    const bool known = std::any_of(unused_.begin(), unused_.end(), [&](const auto& u) { return u.field == kind; });
    if (!known) unused_.push_back({entry.location, kind, field.reason()});
  }

  const Message& root_;
  Tree tree_;
  std::vector<UnusedField> unused_;
};

}  // namespace

Experiment read_specification(const Message& message, const Node& text) {
  Reader reader(message);
  reader.read(message, text, "", "", {});
  Experiment experiment = reader.take();
  experiment.tree.location = text.location;
  return experiment;
}

}  // namespace octet::tao
