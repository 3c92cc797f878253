#include "tao/reference.h"

#include <cmath>
#include <functional>

#include "base/error.h"
#include "schema/schema.h"

namespace octet::tao {
namespace {

std::string dotted(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}
// The key behind that of the message around it.
std::string full_key(const std::string& key, const std::string& base) {
  return key.empty() || key.front() != '.' ? key : base + key;
}
std::string base_within(const Field& field, const std::string& base) {
  return field.key().empty() ? base : full_key(field.key(), base);
}

std::string type_text(const Field& field) {
  std::string out;
  switch (field.type()) {
    case Type::kFlag:
      out = "bool";
      break;
    case Type::kInteger:
      out = "integer";
      break;
    case Type::kNumber:
      out = "number";
      break;
    case Type::kText:
      out = "text";
      break;
    case Type::kChoice: {
      std::vector<std::string> names;
      for (const auto& [name, value] : field.choices()) names.push_back(name);
      out = schema::alternatives(names);
      break;
    }
    case Type::kMessage:
      out = "message";
      break;
  }
  if (field.count() == Count::kList) out += ", repeated";
  if (field.count() == Count::kMap) out = "map to " + out;
  if (!field.group().empty()) out += ", one of " + field.group();
  return out;
}

std::string bound_text(double value) {
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  return whole ? std::to_string(std::llround(value)) : schema::number_text(value);
}

std::string range_text(const Field& field) {
  const std::string low = bound_text(field.low()), high = bound_text(field.high());
  if (std::isinf(field.low()) && std::isinf(field.high())) return "";
  if (std::isinf(field.high())) return ">= " + low;
  return std::isinf(field.low()) ? "<= " + high : low + " to " + high;
}

// `unused`: the message around has no use.
std::string place_text(const Field& field, const std::string& base, bool unused) {
  if (unused) return "none";
  if (!field.reason().empty())
    return str("none: ", field.reason(), field.same().empty() ? "" : str(" (`", field.same(), "` is what Octet does)"));
  std::vector<std::string> parts;
  if (!field.set_path().empty())
    parts.push_back("`" + full_key(field.set_path(), base_within(field, base)) + ": " + field.set_value() + "`");
  if (!field.key().empty())
    parts.push_back("`" + full_key(field.key(), base) + (field.entry_key().empty() ? "" : "." + field.entry_key()) +
                    "`");
  if (!field.also().empty()) parts.push_back("`" + field.also() + "`");
  if (!field.default_name().empty())
    parts.push_back("that of `" + field.default_name() + "`: `" + field.default_path() + "`");
  std::string out = schema::join(parts, ", ");
  if (field.factor() != 1) out += ", times " + schema::number_text(field.factor());
  if (!field.otherwise().empty()) out += str("; absent: ", field.otherwise());
  if (field.type() != Type::kChoice) return out;
  std::vector<std::string> values;
  for (const auto& [name, value] : field.choices()) values.push_back(value);
  return out + " (" + schema::join(values, ", ") + ")";
}

struct Table {
  std::string path, body;
};

void tables(const Message& message, const std::string& path, const std::string& base, bool unused,
            std::vector<Table>& out) {
  std::string body;
  for (const Field& field : message.fields())
    body += "| `" + field.name() + "` | " + type_text(field) + " | " + range_text(field) + " | " + field.meaning() +
            " | " + place_text(field, base, unused) + " |\n";
  for (Table& table : out)
    if (table.body == body) {
      table.path += "`, `" + path;
      return;
    }
  out.push_back({path, body});
  for (const Field& field : message.fields())
    if (field.type() == Type::kMessage)
      tables(field.inner(), dotted(path, field.name()), base_within(field, base), unused || !field.reason().empty(),
             out);
}

void collect_keys(const Message& message, const std::string& base, std::vector<std::string>& out) {
  for (const Field& field : message.fields()) {
    if (!field.set_path().empty()) out.push_back(full_key(field.set_path(), base_within(field, base)));
    if (!field.key().empty() && field.type() != Type::kMessage)
      out.push_back(full_key(field.key(), base) + (field.entry_key().empty() ? "" : "." + field.entry_key()));
    if (!field.also().empty()) out.push_back(field.also());
    if (field.type() == Type::kMessage) collect_keys(field.inner(), base_within(field, base), out);
  }
}

}  // namespace

std::string reference_markdown(const Message& message) {
  std::vector<Table> all;
  tables(message, "", "", false, all);
  std::string out;
  for (const Table& table : all)
    out += (table.path.empty() ? std::string("### The file\n\n") : "### `" + table.path + "`\n\n") +
           "| field | type | range | meaning in TAO | in Octet |\n|---|---|---|---|---|\n" + table.body + "\n";
  return out;
}

std::vector<std::string> keys_of(const Message& message) {
  std::vector<std::string> keys;
  collect_keys(message, "", keys);
  return keys;
}

}  // namespace octet::tao
