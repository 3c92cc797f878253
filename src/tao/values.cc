#include "tao/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/nearest.h"
#include "schema/schema.h"
#include "tao/text_format.h"
#include "tao/tree.h"

namespace octet::tao {
namespace {

using schema::Node;

const char* type_name(const Field& field) {
  switch (field.type()) {
    case Type::kFlag:
      return "true or false";
    case Type::kInteger:
      return "an integer";
    case Type::kNumber:
      return "a number";
    case Type::kText:
      return "a text in quotes";
    case Type::kChoice:
      return "a name without quotes";
    case Type::kMessage:
      return "a message in braces";
  }
  return "";
}

[[noreturn]] void refuse(const Field& field, const Node& token, const std::string& path) {
  fail_usage(token.location, ": '", path, "' takes ", type_name(field), ", found ", describe_node(token));
}

void require_range(const Field& field, double value, const Node& token, const std::string& path) {
  if (value >= field.low() && value <= field.high()) return;
  const std::string low = schema::number_text(field.low()), high = schema::number_text(field.high());
  fail_usage(token.location, ": '", path, "' must be ",
             std::isinf(field.high())  ? str("at least ", low)
             : std::isinf(field.low()) ? str("at most ", high)
                                       : str(low, " to ", high),
             ", found ", schema::shortened(token.text));
}

// Decimal, octal with a leading 0, hexadecimal with 0x.
std::optional<int64_t> integer_of(const std::string& text) {
  const bool negative = !text.empty() && text[0] == '-';
  std::string_view digits = std::string_view(text).substr(negative ? 1 : 0);
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
    digits.remove_prefix(1);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size() || value > INT64_MAX) return std::nullopt;
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

// Also integers, with or without the f of C, and inf, infinity and nan.
std::optional<double> number_of(const std::string& text) {
  if (const auto integer = integer_of(text)) return static_cast<double>(*integer);
  const bool negative = !text.empty() && text[0] == '-';
  std::string digits = text.substr(negative ? 1 : 0);
  std::transform(digits.begin(), digits.end(), digits.begin(), [](unsigned char c) { return std::tolower(c); });
  double value = 0;
  if (digits == "inf" || digits == "infinity" || digits == "inff") {
    value = std::numeric_limits<double>::infinity();
  } else if (digits == "nan") {
    value = std::nan("");
  } else {
    if (digits.size() > 1 && digits.back() == 'f') digits.pop_back();
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range)
      value = std::strtod(digits.c_str(), nullptr);  // infinity or zero
    else if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
      return std::nullopt;
  }
  return negative ? -value : value;
}

std::string choice_of(const Field& field, const Node& token, const std::string& path) {
  const Names& names = field.choices();
  if (token.quoted != (field.type() == Type::kText)) refuse(field, token, path);
  for (const auto& [name, value] : names)
    if (token.text == name) return value;
  if (token.quoted) {
    // A text has no number.
  } else if (const auto number = integer_of(token.text); number && *number >= 0 && std::cmp_less(*number, names.size()))
    return names[static_cast<size_t>(*number)].second;
  std::vector<std::string> known;
  for (const auto& [name, value] : names) known.push_back(name);
  fail_usage(token.location, ": '", path, "' is one of ", schema::join(known, ", "), "; found ", describe_node(token),
             did_you_mean(token.text, known));
}

}  // namespace

Node read_value(const Field& field, const Node& token, const std::string& path) {
  if (token.kind != Node::Kind::kScalar) refuse(field, token, path);
  if (field.type() == Type::kText) {
    if (!field.choices().empty()) return scalar(choice_of(field, token, path), false, token.location);
    if (!token.quoted) refuse(field, token, path);
    return scalar(token.text, true, token.location);
  }
  if (field.type() == Type::kChoice) return scalar(choice_of(field, token, path), false, token.location);
  if (token.quoted) refuse(field, token, path);
  if (field.type() == Type::kFlag) {
    for (const char* yes : {"true", "True", "t", "1"})
      if (token.text == yes) return scalar("true", false, token.location);
    for (const char* no : {"false", "False", "f", "0"})
      if (token.text == no) return scalar("false", false, token.location);
    refuse(field, token, path);
  }
  if (field.type() == Type::kInteger) {
    const std::optional<int64_t> value = integer_of(token.text);
    if (!value) refuse(field, token, path);
    require_range(field, static_cast<double>(*value), token, path);
    return scalar(std::to_string(*value), false, token.location);
  }
  const std::optional<double> value = number_of(token.text);
  if (!value) refuse(field, token, path);
  if (!std::isfinite(*value))
    fail_usage(token.location, ": '", path, "' must be a finite number, found ", schema::shortened(token.text));
  require_range(field, *value, token, path);
  return scalar(schema::number_text(*value * field.factor()), false, token.location);
}

std::optional<std::string> write_value(const Field& field, const Node& value) {
  if (value.kind != Node::Kind::kScalar) return std::nullopt;
  switch (field.type()) {
    case Type::kText:
      for (const auto& [name, text] : field.choices())
        if (text == value.text) return text_format_string(name);
      if (!field.choices().empty()) return std::nullopt;
      return text_format_string(value.text);
    case Type::kChoice:
      for (const auto& [name, text] : field.choices())
        if (text == value.text) return name;
      return std::nullopt;
    case Type::kNumber: {
      const std::optional<double> number = number_of(value.text);
      if (!number) return std::nullopt;
      return schema::number_text(*number / field.factor());
    }
    case Type::kFlag:
      if (value.text != "true" && value.text != "false") return std::nullopt;  // "auto"
      return value.text;
    case Type::kInteger: {
      const std::optional<double> number = number_of(value.text);  // a number of Octet may be an integer of TAO
      if (!number || *number != std::floor(*number) || std::abs(*number) > 1e15) return std::nullopt;
      return std::to_string(std::llround(*number));
    }
    case Type::kMessage:
      break;
  }
  return std::nullopt;
}

}  // namespace octet::tao
