#include "schema/reference.h"

#include "base/error.h"
#include "base/nearest.h"
#include "schema/tree.h"

namespace octet::schema {
namespace {

std::string help_of(const Field& field) {
  std::string out = field.help_text();
  if (!field.same_keys().empty()) out += str(" Same keys as `", field.same_keys(), "`.");
  if (!field.starting_text().empty()) out += str(" A key that is absent is taken from ", field.starting_text(), ".");
  return out;
}

struct Documented {
  std::string path;  // empty: the file
  std::string help;
  Section section;
};

void collect(const Section& section, const std::string& path, const std::string& help, std::vector<Documented>& out) {
  out.push_back({path, help, section});
  for (const Field& inner : section.fields()) {
    if (!inner.same_keys().empty()) continue;
    const std::string inner_path = dotted(path, inner.name());
    if (const auto* plain = std::get_if<SectionSlot>(&inner.slot()))
      collect(*plain->section, inner_path, help_of(inner), out);
    if (const auto* optional = std::get_if<OptionalSectionSlot>(&inner.slot()))
      collect(optional->prototype(), inner_path, help_of(inner), out);
    if (const auto* list = std::get_if<SectionListSlot>(&inner.slot()))
      collect(list->prototype(), inner_path, help_of(inner), out);
    if (const auto* map = std::get_if<SectionMapSlot>(&inner.slot()))
      collect(map->prototype(), dotted(inner_path, "NAME"), help_of(inner), out);
  }
}

template <typename List, typename Text>
std::string list_text(const List& values, Text text) {
  std::vector<std::string> parts;
  for (const auto& value : values) parts.push_back(text(value));
  return "[" + join(parts, ", ") + "]";
}

std::string default_text(const Field& field) {
  if (field.is_required()) return "required";
  if (std::holds_alternative<OptionalSectionSlot>(field.slot()) || field.may_be_section()) return "absent";
  if (field.is_section()) return "";
  struct Writer {
    std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
    std::string operator()(const int64_t* v) const { return std::to_string(*v); }
    std::string operator()(const double* v) const { return number_text(*v); }
    std::string operator()(const std::string* v) const { return v->empty() ? "empty" : *v; }
    std::string operator()(const std::filesystem::path* v) const { return v->empty() ? "empty" : v->string(); }
    std::string operator()(const std::vector<int64_t>* v) const {
      return list_text(*v, [](int64_t x) { return std::to_string(x); });
    }
    std::string operator()(std::span<int64_t> v) const {
      return list_text(v, [](int64_t x) { return std::to_string(x); });
    }
    std::string operator()(const std::vector<double>* v) const { return list_text(*v, number_text); }
    std::string operator()(const std::vector<std::string>* v) const {
      return list_text(*v, [](const std::string& x) { return x; });
    }
    std::string operator()(const NamedList<std::string>*) const { return "{}"; }
    std::string operator()(const EnumSlot& s) const { return s.names[s.get()]; }
    std::string operator()(const EnumListSlot& s) const {
      return list_text(s.get(), [&](size_t i) { return s.names[i]; });
    }
    std::string operator()(const SectionSlot&) const { return ""; }
    std::string operator()(const OptionalSectionSlot&) const { return ""; }
    std::string operator()(const SectionListSlot&) const { return "[]"; }
    std::string operator()(const SectionMapSlot&) const { return "{}"; }
  };
  return std::visit(Writer{}, field.slot());
}

std::string range_and_unit(const Field& field) {
  if (field.range_text().empty()) return field.unit_text();
  return field.range_text() + (field.unit_text().empty() ? "" : ", " + field.unit_text());
}

std::vector<Documented> all_sections(const Section& root) {
  std::vector<Documented> out;
  collect(root, "", "", out);
  return out;
}

std::string table(const Section& section) {
  std::string out = "| key | type | default | range, unit | what |\n|---|---|---|---|---|\n";
  for (const Field& field : section.fields()) {
    const std::string value = default_text(field);
    const bool code = !value.empty() && value != "required" && value != "absent" && value != "empty";
    out += str("| `", field.name(), "` | ", field.type_text(), " | ", code ? "`" + value + "`" : value, " | ",
               range_and_unit(field), " | ", help_of(field), " |\n");
  }
  return out;
}

}  // namespace

std::string reference_markdown(const Section& root) {
  std::string out;
  for (const Documented& part : all_sections(root)) {
    out += part.path.empty() ? "\n## Top level\n\n" : "\n## `" + part.path + "`\n\n";
    if (!part.help.empty()) out += part.help + "\n\n";
    out += table(part.section);
  }
  return out;
}

std::string section_help(const Section& root, const std::string& path, const std::string& what) {
  std::vector<std::string> paths;
  std::string out;
  for (const Documented& part : all_sections(root)) {
    paths.push_back(part.path);
    const bool wanted = path.empty() || part.path == path;
    if (!wanted) continue;
    out += part.path.empty() ? "top level\n" : str(part.path, "  -  ", part.help, "\n");
    for (const Field& field : part.section.fields()) {
      const std::string value = default_text(field);
      const std::string range = range_and_unit(field);
      out += str("  ", field.name(), ": ", field.type_text(), value.empty() ? "" : "; default " + value,
                 range.empty() ? "" : "; " + range, "\n      ", help_of(field), "\n");
    }
  }
  if (out.empty()) fail_usage(what, " has no section '", path, "'", did_you_mean(path, paths));
  return out;
}

}  // namespace octet::schema
