// What every text is checked for before a parser of specs sees it.
#pragma once
#include <string>
#include <string_view>

namespace octet::schema {

constexpr size_t kLargestText = 1 << 20;  // bytes
constexpr size_t kMostNodes = 100'000;    // keys, values, lists and sections of one text; YAML's aliases expanded
constexpr int kDeepestNesting = 32;       // levels of sections and lists

// "spec.yaml:12:3"
std::string place_in(const std::string& name, int line, int column);

// UserError (exit 2) for a text that is too large, not UTF-8, or has control characters other than line ends and tabs.
// `name` stands for the file, `format` for what it ought to be ("YAML").
void require_printable_text(std::string_view text, const std::string& name, const std::string& format);

// Length of the UTF-8 sequence that starts at byte `i`, 0 where there is none.
size_t utf8_length(std::string_view text, size_t i);

}  // namespace octet::schema
