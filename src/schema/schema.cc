#include "schema/schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace octet::schema {
namespace {

// Limits are round numbers: "100000" reads better than the shortest form, "1e+05".
std::string limit_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::to_string(static_cast<int64_t>(value));
  return number_text(value);
}

}  // namespace

std::string alternatives(const std::vector<std::string>& names) {
  if (names.size() < 2) return join(names, "");
  return join({names.begin(), names.end() - 1}, ", ") + " or " + names.back();
}

std::string number_text(double value) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  OCTET_CHECK(error == std::errc());
  return std::string(buffer, end);
}

std::string join(const std::vector<std::string>& parts, const std::string& separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) out += (i ? separator : "") + parts[i];
  return out;
}

bool Field::is_section() const {
  return std::holds_alternative<SectionSlot>(slot_) || std::holds_alternative<OptionalSectionSlot>(slot_);
}

bool Field::in_range(double value) const {
  if (std::isnan(value)) return false;
  if (!choices_.empty()) return std::any_of(choices_.begin(), choices_.end(), [&](int64_t c) { return value == c; });
  return (open_low_ ? value > low_ : value >= low_) && value <= high_;
}

bool Field::accepts(const std::string& text) const {
  return !accepts_ || accepts_(text);
}

bool Field::is_written() const {
  if (written_when_) return written_when_();
  if (const auto* optional = std::get_if<OptionalSectionSlot>(&slot_)) return optional->present();
  if (const auto* list = std::get_if<SectionListSlot>(&slot_)) return !or_section_ || list->size() > 0;
  if (const auto* map = std::get_if<SectionMapSlot>(&slot_)) return !map->names().empty();
  if (const auto* map = std::get_if<NamedList<std::string>*>(&slot_)) return !(*map)->empty();
  return true;
}

std::string Field::range_text() const {
  if (!choices_.empty()) {
    std::vector<std::string> names;
    for (const int64_t choice : choices_) names.push_back(std::to_string(choice));
    return alternatives(names);
  }
  const bool low = std::isfinite(low_), high = std::isfinite(high_);
  if (low && high && open_low_) return str("more than ", limit_text(low_), ", at most ", limit_text(high_));
  if (low && high) return str(limit_text(low_), " to ", limit_text(high_));
  if (low) return str(open_low_ ? "more than " : "at least ", limit_text(low_));
  if (high) return str("at most ", limit_text(high_));
  return "";
}

std::string Field::type_text() const {
  struct Namer {
    const Field& field;
    std::string operator()(bool*) const { return "true or false"; }
    std::string operator()(int64_t*) const { return "integer"; }
    std::string operator()(double*) const { return "number"; }
    std::string operator()(std::string*) const { return text(); }
    std::string operator()(std::filesystem::path*) const { return text(); }
    std::string text() const {
      if (field.path_kind() == PathKind::kInput) return "path (must exist)";
      if (field.path_kind() == PathKind::kInputPattern) return "path (must exist)";
      if (field.path_kind() == PathKind::kOutput) return "path (output)";
      return field.allowed_text().empty() ? "text" : field.allowed_text();
    }
    std::string operator()(std::span<int64_t>) const { return "list of integers"; }
    std::string operator()(std::vector<int64_t>*) const { return "list of integers"; }
    std::string operator()(std::vector<double>*) const { return "list of numbers"; }
    std::string operator()(std::vector<std::string>*) const { return "list of texts"; }
    std::string operator()(NamedList<std::string>*) const { return "map of texts"; }
    std::string operator()(const EnumSlot& slot) const { return alternatives(slot.names); }
    std::string operator()(const EnumListSlot& slot) const { return "list of " + alternatives(slot.names); }
    std::string operator()(const SectionSlot&) const { return "section"; }
    std::string operator()(const OptionalSectionSlot&) const { return "section"; }
    std::string operator()(const SectionListSlot&) const {
      return field.may_be_section() ? "section or list of sections" : "list";
    }
    std::string operator()(const SectionMapSlot&) const { return "map of sections"; }
  };
  return std::visit(Namer{*this}, slot_) + (automatic_ ? " or auto" : "");
}

const Field* Section::find(std::string_view name) const {
  for (const Field& field : fields_)
    if (field.name() == name) return &field;
  return nullptr;
}

}  // namespace octet::schema
