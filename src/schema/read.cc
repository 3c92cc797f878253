// Tree to typed options, with every complaint a person can act on.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/nearest.h"
#include "schema/schema.h"
#include "schema/tree.h"

namespace octet::schema {
namespace {

std::string quoted_section(const std::string& path) {
  return path.empty() ? "the file" : "'" + path + "'";
}

class Reader {
 public:
  Reader(const Section& root, const ReadOptions& options) : root_(root), options_(options) {}

  void read(const Section& section, const Node& node, const std::string& path) const {
    if (node.kind != Node::Kind::kMap && node.kind != Node::Kind::kNull)
      fail_usage(node.location, ": ", quoted_section(path), " is a section: expected keys, found ",
                 describe_node(node));
    for (const Entry& entry : node.entries)
      if (!section.find(entry.key)) refuse_key(section, entry, path);
    for (const Field& field : section.fields()) {
      field.prepare();
      const Node* value = node.find(field.name());
      const bool absent = !value || value->kind == Node::Kind::kNull;
      if (absent && field.is_required())
        fail_usage(node.location, ": the key '", field.name(), "' is missing in ", quoted_section(path), ": ",
                   field.help_text());
      // A plain section that is absent is read as an empty one: it may prepare defaults or hold required keys.
      if (absent && !std::holds_alternative<SectionSlot>(field.slot())) continue;
      Node empty;
      empty.location = value ? value->location : node.location;
      read_value(field, absent ? empty : *value, dotted(path, field.name()));
    }
    for (const Rule& rule : section.rules())
      if (const std::string complaint = rule.complaint(); !complaint.empty())
        fail_usage(place_of(rule.key, node), ": '", dotted(path, rule.key), "' ", complaint);
  }

 private:
  // Of a key, or of the nearest section around it that is in the file.
  static std::string place_of(const std::string& key, const Node& section) {
    const Node* node = &section;
    for (size_t begin = 0; begin <= key.size();) {
      const size_t end = std::min(key.find('.', begin), key.size());
      const Node* next = node->find(std::string_view(key).substr(begin, end - begin));
      if (!next) break;
      node = next;
      begin = end + 1;
    }
    return node->location;
  }

  [[noreturn]] void refuse_key(const Section& section, const Entry& entry, const std::string& path) const {
    std::vector<std::string> names;
    for (const Field& field : section.fields()) names.push_back(field.name());
    std::string hint;
    const std::string synonym = find_synonym(section, path, entry.key, /*deep=*/false);
    if (!synonym.empty()) hint = str("; did you mean '", synonym, "'?");
    // The right key in the wrong section is likelier than a key that merely looks alike.
    for (const auto& [from, from_path] : {std::pair(&section, path), std::pair(&root_, std::string())}) {
      if (hint.empty()) {
        const std::string home = find_home(*from, from_path, entry.key);
        if (!home.empty()) hint = str("; it belongs in '", home, "'");
      }
      if (hint.empty()) {
        const std::string distant = find_synonym(*from, from_path, entry.key, /*deep=*/true);
        if (!distant.empty()) hint = str("; did you mean '", distant, "'?");
      }
    }
    if (hint.empty()) hint = did_you_mean(entry.key, names);
    if (hint.empty()) hint = str("; known keys: ", join(names, ", "));
    fail_usage(entry.location, ": unknown key '", shortened(entry.key), "' in ", quoted_section(path), hint);
  }

  // Calls visit(section, path) for every section inside, outermost first, until one returns something.
  template <typename Visit>
  static std::string search_inside(const Section& section, const std::string& path, Visit visit) {
    for (const Field& field : section.fields()) {
      const Section* inner = nullptr;
      std::optional<Section> prototype;
      if (const auto* plain = std::get_if<SectionSlot>(&field.slot())) inner = plain->section.get();
      if (const auto* optional = std::get_if<OptionalSectionSlot>(&field.slot()))
        inner = &prototype.emplace(optional->prototype());
      if (const auto* list = std::get_if<SectionListSlot>(&field.slot())) inner = &prototype.emplace(list->prototype());
      if (const auto* map = std::get_if<SectionMapSlot>(&field.slot())) inner = &prototype.emplace(map->prototype());
      if (!inner) continue;
      std::string found = visit(*inner, dotted(path, field.name()));
      if (found.empty()) found = search_inside(*inner, dotted(path, field.name()), visit);
      if (!found.empty()) return found;
    }
    return "";
  }

  // A section inside `section` that has the key.
  static std::string find_home(const Section& section, const std::string& path, const std::string& key) {
    return search_inside(section, path, [&](const Section& inner, const std::string& inner_path) {
      return inner.find(key) ? inner_path : std::string();
    });
  }

  // The key that other tools call `key`: just its name where it is in `section` itself, else with its path.
  static std::string find_synonym(const Section& section, const std::string& path, const std::string& key, bool deep) {
    const auto in = [&](const Section& where) -> const Field* {
      for (const Field& field : where.fields())
        if (std::count(field.synonyms().begin(), field.synonyms().end(), key) > 0) return &field;
      return nullptr;
    };
    if (!deep) return in(section) ? in(section)->name() : "";
    return search_inside(section, path, [&](const Section& inner, const std::string& inner_path) {
      const Field* field = in(inner);
      return field ? dotted(inner_path, field->name()) : std::string();
    });
  }

  [[noreturn]] static void refuse_type(const Field& field, const Node& node, const std::string& path) {
    fail_usage(node.location, ": '", path, "' takes ", indefinite(field.type_text()), ", found ", describe_node(node));
  }
  static std::string indefinite(const std::string& type) {
    if (type.rfind("integer", 0) == 0) return "an " + type;
    for (const char* noun : {"number", "section", "list", "map", "path"})
      if (type.rfind(noun, 0) == 0) return "a " + type;
    return type;
  }

  static void require_plain(const Field& field, const Node& node, const std::string& path) {
    if (node.kind != Node::Kind::kScalar || node.quoted) refuse_type(field, node, path);
  }
  static void require_range(const Field& field, double value, const Node& node, const std::string& path) {
    if (field.in_range(value)) return;
    fail_usage(node.location, ": '", path, "' must be ", field.range_text().empty() ? "a number" : field.range_text(),
               field.unit_text().empty() ? "" : " (" + field.unit_text() + ")", ", found ", shortened(node.text));
  }

  static bool read_bool(const Field& field, const Node& node, const std::string& path) {
    require_plain(field, node, path);
    for (const char* yes : {"true", "True", "TRUE"})
      if (node.text == yes) return true;
    for (const char* no : {"false", "False", "FALSE"})
      if (node.text == no) return false;
    refuse_type(field, node, path);
  }
  static int64_t read_int(const Field& field, const Node& node, const std::string& path) {
    require_plain(field, node, path);
    const char *begin = node.text.data(), *end = begin + node.text.size();
    if (begin != end && *begin == '+') ++begin;
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (stop != end || begin == end || error == std::errc::invalid_argument) refuse_type(field, node, path);
    if (error == std::errc::result_out_of_range) require_range(field, std::nan(""), node, path);
    require_range(field, static_cast<double>(value), node, path);
    return value;
  }
  static double read_double(const Field& field, const Node& node, const std::string& path) {
    require_plain(field, node, path);
    const char *begin = node.text.data(), *end = begin + node.text.size();
    if (begin != end && *begin == '+') ++begin;
    double value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (stop != end || begin == end || error == std::errc::invalid_argument) refuse_type(field, node, path);
    // Infinities, NaN and what does not fit a double are no settings.
    if (error == std::errc::result_out_of_range || !std::isfinite(value))
      fail_usage(node.location, ": '", path, "' must be a finite number", ", found ", shortened(node.text));
    require_range(field, value, node, path);
    return value;
  }
  static bool is_pattern_in_a_folder(const std::filesystem::path& path) {
    if (path.filename().string().find_first_of("*?") == std::string::npos) return false;
    std::error_code error;
    return std::filesystem::is_directory(path.has_parent_path() ? path.parent_path() : ".", error);
  }
  std::string read_text(const Field& field, const Node& node, const std::string& path) const {
    if (node.kind != Node::Kind::kScalar) refuse_type(field, node, path);
    if (!field.accepts(node.text))
      fail_usage(node.location, ": '", path, "' must be ", field.allowed_text(), ", found ", describe_node(node));
    const bool pattern = field.path_kind() == PathKind::kInputPattern;
    if ((field.path_kind() == PathKind::kInput || pattern) && options_.check_files && !node.text.empty()) {
      std::error_code error;
      if (!std::filesystem::exists(node.text, error) && !(pattern && is_pattern_in_a_folder(node.text)))
        fail_usage(node.location, ": '", path, "' names ", node.text, ", which does not exist",
                   node.text.front() == '/' ? ""
                                            : str(" in ", std::filesystem::current_path(error).string(),
                                                  " (paths are relative to the working directory)"));
    }
    return node.text;
  }
  static size_t read_choice(const std::vector<std::string>& names, const Node& node, const std::string& path) {
    if (node.kind != Node::Kind::kScalar)
      fail_usage(node.location, ": '", path, "' is one of ", join(names, ", "), "; found ", describe_node(node));
    const auto it = std::find(names.begin(), names.end(), node.text);
    if (it == names.end())
      fail_usage(node.location, ": '", path, "' is one of ", join(names, ", "), "; found ", describe_node(node),
                 did_you_mean(node.text, names));
    return static_cast<size_t>(it - names.begin());
  }

  // A single value stands for a list of one.
  template <typename T, typename ReadItem>
  static std::vector<T> read_list(const Field& field, const Node& node, const std::string& path, ReadItem read_item) {
    std::vector<T> out;
    if (node.kind == Node::Kind::kMap) refuse_type(field, node, path);
    if (node.kind == Node::Kind::kList)
      for (const Node& item : node.items) out.push_back(read_item(item));
    else
      out.push_back(read_item(node));
    if (out.size() < field.least() || out.size() > field.most())
      fail_usage(node.location, ": '", path, "' takes ",
                 field.least() == field.most() ? "" : str(field.least(), " to "), field.most(), " values, found ",
                 out.size());
    return out;
  }

  void read_value(const Field& field, const Node& node, const std::string& path) const {
    struct Visitor {
      const Reader& reader;
      const Field& field;
      const Node& node;
      const std::string& path;
      void operator()(bool* out) const { *out = read_bool(field, node, path); }
      void operator()(int64_t* out) const { *out = read_int(field, node, path); }
      void operator()(double* out) const { *out = read_double(field, node, path); }
      void operator()(std::string* out) const { *out = reader.read_text(field, node, path); }
      void operator()(std::filesystem::path* out) const { *out = reader.read_text(field, node, path); }
      void operator()(std::vector<int64_t>* out) const {
        *out = read_list<int64_t>(field, node, path, [&](const Node& item) { return read_int(field, item, path); });
      }
      void operator()(std::span<int64_t> out) const {
        const auto values =
            read_list<int64_t>(field, node, path, [&](const Node& item) { return read_int(field, item, path); });
        OCTET_CHECK(values.size() == out.size(), "a list of another length than its array");
        std::copy(values.begin(), values.end(), out.begin());
      }
      void operator()(std::vector<double>* out) const {
        *out = read_list<double>(field, node, path, [&](const Node& item) { return read_double(field, item, path); });
      }
      void operator()(std::vector<std::string>* out) const {
        *out = read_list<std::string>(field, node, path,
                                      [&](const Node& item) { return reader.read_text(field, item, path); });
      }
      void operator()(NamedList<std::string>* out) const {
        if (node.kind != Node::Kind::kMap) refuse_type(field, node, path);
        out->clear();
        for (const Entry& entry : node.entries)
          out->emplace_back(entry.key, reader.read_text(field, entry.value, dotted(path, entry.key)));
      }
      void operator()(const EnumSlot& slot) const { slot.set(read_choice(slot.names, node, path)); }
      void operator()(const EnumListSlot& slot) const {
        slot.set(read_list<size_t>(field, node, path,
                                   [&](const Node& item) { return read_choice(slot.names, item, path); }));
      }
      void operator()(const SectionSlot& slot) const { reader.read(*slot.section, node, path); }
      void operator()(const OptionalSectionSlot& slot) const {
        slot.create();
        reader.read(slot.bind(), node, path);
      }
      void operator()(const SectionListSlot& slot) const {
        if (node.kind == Node::Kind::kMap && field.may_be_section()) {
          slot.resize(1);
          return reader.read(slot.bind(0), node, path);
        }
        if (node.kind != Node::Kind::kList) refuse_type(field, node, path);
        slot.resize(node.items.size());
        for (size_t i = 0; i < node.items.size(); ++i) reader.read_item(field, slot.bind(i), node.items[i], path);
      }
      void operator()(const SectionMapSlot& slot) const {
        if (node.kind != Node::Kind::kMap) refuse_type(field, node, path);
        slot.clear();
        for (const Entry& entry : node.entries) reader.read(slot.add(entry.key), entry.value, dotted(path, entry.key));
      }
    };
    if (bool* const automatic = field.automatic()) {
      *automatic = node.kind == Node::Kind::kScalar && node.text == "auto";
      if (*automatic) return;
    }
    std::visit(Visitor{*this, field, node, path}, field.slot());
  }

  void read_item(const Field& field, const Section& section, const Node& item, const std::string& path) const {
    if (item.kind != Node::Kind::kScalar || field.shorthand_key().empty()) {
      if (item.kind == Node::Kind::kNull) fail_usage(item.location, ": an item of '", path, "' is empty");
      return read(section, item, path);
    }
    Node map;
    map.kind = Node::Kind::kMap;
    map.location = item.location;
    map.entries.push_back({field.shorthand_key(), item.location, item});
    read(section, map, path);
  }

  const Section& root_;
  const ReadOptions& options_;
};

}  // namespace

void read_section(const Section& section, const Node& node, const std::string& path, const ReadOptions& options) {
  Reader(section, options).read(section, node, path);
}

}  // namespace octet::schema
