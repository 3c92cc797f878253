// Typed options to YAML.
#include <algorithm>
#include <cstdio>

#include "schema/schema.h"
#include "schema/tree.h"

namespace octet::schema {

std::string yaml_text(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '/' || c == '-' || c == '+';
  };
  const bool starts_well =
      !text.empty() && (text[0] == '/' || (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
  const bool reserved = text == "null" || text == "Null" || text == "NULL";
  if (starts_well && !reserved && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

namespace {

template <typename List, typename Text>
std::string list_yaml(const List& values, Text text) {
  std::vector<std::string> parts;
  for (const auto& value : values) parts.push_back(text(value));
  return "[" + join(parts, ", ") + "]";
}

void write(const Section& section, const std::string& indent, std::string& out);

// The value after "key:", with the line's end; sections go on in the following lines.
struct ValueWriter {
  const Field& field;
  const std::string& indent;
  std::string& out;

  void line(const std::string& value) const { out += " " + value + "\n"; }
  void operator()(const bool* value) const { line(*value ? "true" : "false"); }
  void operator()(const int64_t* value) const { line(std::to_string(*value)); }
  void operator()(const double* value) const { line(number_text(*value)); }
  void operator()(const std::string* value) const { line(yaml_text(*value)); }
  void operator()(const std::filesystem::path* value) const { line(yaml_text(value->string())); }
  void operator()(const std::vector<int64_t>* values) const {
    line(list_yaml(*values, [](int64_t v) { return std::to_string(v); }));
  }
  void operator()(std::span<int64_t> values) const {
    line(list_yaml(values, [](int64_t v) { return std::to_string(v); }));
  }
  void operator()(const std::vector<double>* values) const { line(list_yaml(*values, number_text)); }
  void operator()(const std::vector<std::string>* values) const { line(list_yaml(*values, yaml_text)); }
  void operator()(const NamedList<std::string>* values) const {
    if (values->empty()) return line("{}");
    out += "\n";
    for (const auto& [key, value] : *values) out += indent + "  " + yaml_text(key) + ": " + yaml_text(value) + "\n";
  }
  void operator()(const EnumSlot& slot) const { line(slot.names[slot.get()]); }
  void operator()(const EnumListSlot& slot) const {
    line(list_yaml(slot.get(), [&](size_t i) { return slot.names[i]; }));
  }
  void operator()(const SectionSlot& slot) const {
    out += "\n";
    write(*slot.section, indent + "  ", out);
  }
  void operator()(const OptionalSectionSlot& slot) const {
    out += "\n";
    write(slot.bind(), indent + "  ", out);
  }
  void operator()(const SectionListSlot& slot) const {
    if (slot.size() == 0) return line("[]");
    out += "\n";
    if (slot.size() == 1 && field.may_be_section()) return write(slot.bind(0), indent + "  ", out);
    for (size_t i = 0; i < slot.size(); ++i) {
      std::string item;
      write(slot.bind(i), indent + "    ", item);
      item.replace(indent.size() + 2, 1, "-");  // the first key stands behind the dash
      out += item;
    }
  }
  void operator()(const SectionMapSlot& slot) const {
    const std::vector<std::string> names = slot.names();
    if (names.empty()) return line("{}");
    out += "\n";
    for (size_t i = 0; i < names.size(); ++i) {
      out += indent + "  " + yaml_text(names[i]) + ":\n";
      write(slot.bind(i), indent + "    ", out);
    }
  }
};

void write(const Section& section, const std::string& indent, std::string& out) {
  for (const Field& field : section.fields()) {
    if (!field.is_written()) continue;
    out += indent + field.name() + ":";
    if (field.automatic() && *field.automatic())
      out += " auto\n";
    else
      std::visit(ValueWriter{field, indent, out}, field.slot());
  }
}

std::string scalar_yaml(const Node& node) {
  return node.quoted ? yaml_text(node.text) : node.text;
}

void write_tree(const Node& map, const std::string& indent, std::string& out) {
  const auto is_plain = [](const Node& item) { return item.kind == Node::Kind::kScalar; };
  for (const Entry& entry : map.entries) {
    const Node& value = entry.value;
    out += indent + yaml_text(entry.key) + ":";
    if (value.kind == Node::Kind::kMap && !value.entries.empty()) {
      out += "\n";
      write_tree(value, indent + "  ", out);
    } else if (value.kind == Node::Kind::kMap) {
      out += " {}\n";
    } else if (value.kind == Node::Kind::kScalar) {
      out += " " + scalar_yaml(value) + "\n";
    } else if (std::all_of(value.items.begin(), value.items.end(), is_plain)) {
      out += value.kind == Node::Kind::kList ? " " + list_yaml(value.items, scalar_yaml) + "\n" : "\n";
    } else {
      out += "\n";
      for (const Node& section : value.items) {
        std::string item;
        write_tree(section, indent + "    ", item);
        if (item.empty()) item = indent + "    {}\n";
        item.replace(indent.size() + 2, 1, "-");  // the first key stands behind the dash
        out += item;
      }
    }
  }
}

}  // namespace

std::string write_yaml(const Node& map) {
  std::string out;
  write_tree(map, "", out);
  return out;
}

std::string write_section(const Section& section) {
  std::string out;
  write(section, "", out);
  return out;
}

}  // namespace octet::schema
