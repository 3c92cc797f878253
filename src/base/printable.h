// Names come from files and file names, and may hold anything: also bytes that a terminal obeys (colors, the title,
// what was typed before) or that turn a line around. What is printed passes through here at the places where text
// leaves: messages, log, tables, progress and standard output.
#pragma once
#include <streambuf>
#include <string>
#include <string_view>

namespace octet {

// Control characters (C0, DEL, C1), the marks that turn the direction of writing and line separators as "\u001b", bytes
// that are no UTF-8 as "\xff". Of one line: also line feeds ("\n") and tabs ("\t").
std::string printable_line(std::string_view text);
// Of several lines: line feeds and tabs stay. What is valid JSON stays the same JSON.
std::string printable_text(std::string_view text);

// Passes text on to another buffer as printable_text.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::streambuf& out) : out_(out) {}

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  bool pass_on(bool all);

  std::streambuf& out_;
  std::string held_;  // the begin of a character whose end has not come yet
};

}  // namespace octet
