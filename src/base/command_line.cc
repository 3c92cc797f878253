#include "base/command_line.h"

#include <string_view>

namespace octet {
namespace {

std::string& remembered() {
  static std::string text;
  return text;
}

// In single quotes where a shell would take it apart.
std::string quoted(const std::string& argument) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string out = "'";
  for (const char c : argument) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

void remember_command_line(const std::vector<std::string>& arguments) {
  remembered() = "octet";
  for (const std::string& argument : arguments) remembered() += " " + quoted(argument);
}

const std::string& command_line() {
  return remembered();
}

}  // namespace octet
