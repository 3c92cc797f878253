#include "tao/text_format.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/error.h"
#include "schema/source_text.h"

namespace octet::tao {
namespace {

using schema::Entry;
using schema::Node;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct Token {
  enum class Kind { kEnd, kName, kNumber, kString, kSign };
  Kind kind = Kind::kEnd;
  std::string text;  // kString: resolved; kSign: one character
  std::string location;
  std::string shown() const {
    if (kind == Kind::kEnd) return "the end of the file";
    return str(kind == Kind::kString ? "the text '" : "'", schema::shortened(text), "'");
  }
};

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Token next() {
    skip_space();
    Token token;
    token.location = here();
    if (at_end()) return token;
    const char c = peek();
    if (is_letter(c)) {
      token.kind = Token::Kind::kName;
      while (!at_end() && (is_letter(peek()) || is_digit(peek()))) token.text += take();
    } else if (is_digit(c) || (c == '.' && i_ + 1 < text_.size() && is_digit(text_[i_ + 1]))) {
      token.kind = Token::Kind::kNumber;
      take_number(token.text);
    } else if (c == '"' || c == '\'') {
      token.kind = Token::Kind::kString;
      take_string(token.text);
    } else {
      token.kind = Token::Kind::kSign;
      for (size_t length = std::max<size_t>(1, schema::utf8_length(text_, i_)); length > 0; --length)
        token.text += text_[i_++];
      ++column_;
    }
    return token;
  }

 private:
  bool at_end() const { return i_ >= text_.size(); }
  char peek() const { return text_[i_]; }
  std::string here() const { return schema::place_in(name_, line_, column_); }
  char take() {
    const char c = text_[i_++];
    if (c == '\n') line_++, column_ = 1;
    // One column for each character.
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
      ++column_;
    return c;
  }
  void skip_space() {
    while (!at_end()) {
      if (peek() == '#') {
        while (!at_end() && peek() != '\n') take();
      } else if (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
        take();
      } else {
        return;
      }
    }
  }
  // Digits, letters and points as they come, and the sign of an exponent; whether that is a number is found by whoever
  // knows its type.
  void take_number(std::string& out) {
    while (!at_end()) {
      const bool hexadecimal = out.size() > 1 && (out[1] == 'x' || out[1] == 'X');
      const bool after_exponent = !hexadecimal && !out.empty() && (out.back() == 'e' || out.back() == 'E');
      if (!is_digit(peek()) && !is_letter(peek()) && peek() != '.' &&
          !(after_exponent && (peek() == '-' || peek() == '+')))
        return;
      out += take();
    }
  }
  void take_string(std::string& out) {
    const std::string begin = here();
    const char quote = take();
    const size_t first = out.size();
    while (true) {
      if (at_end() || peek() == '\n') fail_usage(begin, ": the text that begins here has no closing quote on its line");
      if (peek() == quote) break;
      if (peek() == '\\')
        take_escape(out);
      else
        out += take();
    }
    take();
    for (size_t i = first; i < out.size();) {
      const size_t length = schema::utf8_length(out, i);
      if (length == 0 || out[i] == '\0') fail_usage(begin, ": the escapes of this text make no UTF-8 text");
      i += length;
    }
  }
  void take_escape(std::string& out) {
    const std::string begin = here();
    take();
    if (at_end()) return;  // the missing quote is reported
    static constexpr std::string_view kNames = "abfnrtv\\'\"?", kValues = "\a\b\f\n\r\t\v\\'\"?";
    const char c = peek();
    if (const size_t known = kNames.find(c); known != std::string_view::npos) {
      take();
      out += kValues[known];
    } else if (c >= '0' && c <= '7') {
      int value = 0;
      for (int n = 0; n < 3 && !at_end() && peek() >= '0' && peek() <= '7'; ++n) value = value * 8 + (take() - '0');
      if (value > 255) fail_usage(begin, ": the octal escape is more than a byte");
      out += static_cast<char>(value);
    } else if (c == 'x' || c == 'X') {
      take();
      out += static_cast<char>(take_hex(begin, 1, 2));
    } else if (c == 'u' || c == 'U') {
      take();
      append_utf8(out, take_hex(begin, c == 'u' ? 4 : 8, c == 'u' ? 4 : 8), begin);
    } else {
      fail_usage(begin, ": unknown escape '\\", is_letter(c) || is_digit(c) ? std::string(1, c) : std::string("?"),
                 "'; a backslash itself is written \\\\");
    }
  }
  uint32_t take_hex(const std::string& begin, int least, int most) {
    uint32_t value = 0;
    int digits = 0;
    for (; digits < most && !at_end() && hex_value(peek()) >= 0; ++digits)
      value = value * 16 + static_cast<uint32_t>(hex_value(take()));
    if (digits < least) fail_usage(begin, ": the escape needs ", least, " hexadecimal digits");
    return value;
  }
  static void append_utf8(std::string& out, uint32_t code, const std::string& begin) {
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail_usage(begin, ": the escape names no character");
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0 | (code >> 12));
      tail(6), tail(0);
    } else {
      out += static_cast<char>(0xF0 | (code >> 18));
      tail(12), tail(6), tail(0);
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t i_ = 0;
  int line_ = 1, column_ = 1;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : scanner_(text, name) { advance(); }

  Node file(const std::string& name) {
    Node root;
    root.kind = Node::Kind::kMap;
    root.location = schema::place_in(name, 1, 1);
    fields(root, "");
    return root;
  }

 private:
  void advance() { token_ = scanner_.next(); }
  bool is_sign(const char* sign) const { return token_.kind == Token::Kind::kSign && token_.text == sign; }
  void count(const std::string& location) {
    if (++nodes_ > schema::kMostNodes)
      fail_usage(location, ": the file has more than ", schema::kMostNodes, " entries");
  }

  // Up to `close` ("" for the end of the file), which is taken.
  void fields(Node& message, const std::string& close) {
    while (true) {
      if (close.empty() ? token_.kind == Token::Kind::kEnd : is_sign(close.c_str())) break;
      if (token_.kind == Token::Kind::kEnd)
        fail_usage(token_.location, ": the file ends within the message that begins at ", message.location, "; a '",
                   close, "' is missing");
      if (token_.kind != Token::Kind::kName)
        fail_usage(token_.location, ": expected the name of a field, found ", token_.shown(),
                   is_sign("}") || is_sign(">") ? "; it closes nothing"
                   : is_sign("[")               ? "; extensions ([...]) are no fields of a specification"
                                                : "");
      field(message);
    }
    if (!close.empty()) advance();
  }

  void field(Node& message) {
    const std::string key = token_.text, location = token_.location;
    advance();
    const bool colon = is_sign(":");
    if (colon) advance();
    if (is_sign("[")) {
      advance();
      while (!is_sign("]")) {
        add(message, key, location, value(key, true));
        if (is_sign(",")) {
          advance();
          if (is_sign("]")) fail_usage(token_.location, ": expected a value behind the comma, found ']'");
        } else if (!is_sign("]")) {
          fail_usage(token_.location, ": expected ',' or ']' in the list of '", schema::shortened(key), "', found ",
                     token_.shown());
        }
      }
      advance();
    } else {
      add(message, key, location, value(key, colon));
    }
    if (is_sign(",") || is_sign(";")) advance();
  }

  void add(Node& message, const std::string& key, const std::string& location, Node value) {
    count(location);
    message.entries.push_back({key, location, std::move(value)});
  }

  Node value(const std::string& key, bool may_be_scalar) {
    Node node;
    node.location = token_.location;
    if (is_sign("{") || is_sign("<")) {
      node.kind = Node::Kind::kMap;
      if (++depth_ > schema::kDeepestNesting)
        fail_usage(token_.location, ": messages are nested more than ", schema::kDeepestNesting, " deep");
      const std::string close = is_sign("{") ? "}" : ">";
      advance();
      fields(node, close);
      --depth_;
      return node;
    }
    if (!may_be_scalar)
      fail_usage(token_.location, ": expected ':' or '{' behind '", schema::shortened(key), "', found ",
                 token_.shown());
    node.kind = Node::Kind::kScalar;
    if (token_.kind == Token::Kind::kString) {
      node.quoted = true;
      for (; token_.kind == Token::Kind::kString; advance()) node.text += token_.text;
      return node;
    }
    if (is_sign("-")) {
      node.text = "-";
      advance();
    }
    if (token_.kind != Token::Kind::kNumber && token_.kind != Token::Kind::kName)
      fail_usage(token_.location, ": expected a value of '", schema::shortened(key), "', found ", token_.shown());
    node.text += token_.text;
    advance();
    return node;
  }

  Scanner scanner_;
  Token token_;
  size_t nodes_ = 0;
  int depth_ = 0;
};

}  // namespace

Node parse_text_format(std::string_view text, const std::string& name) {
  schema::require_printable_text(text, name, "protobuf text");
  return Parser(text, name).file(name);
}

bool looks_like_text_format(std::string_view text, const std::vector<std::string>& fields) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    size_t i = begin;
    begin = end + 1;
    while (i < end && is_space(text[i])) ++i;
    const size_t name = i;
    while (i < end && (is_letter(text[i]) || is_digit(text[i]))) ++i;
    if (i == name || is_digit(text[name])) continue;
    const std::string_view key = text.substr(name, i - name);
    const size_t next = text.find_first_not_of(" \t\r\n", i);
    if (next != std::string_view::npos && text[next] == '{') return true;
    while (i < end && is_space(text[i])) ++i;
    if (i == end || text[i] != ':') continue;
    for (++i; i < end && is_space(text[i]); ++i) {
    }
    if (i == end || text[i] != '{') continue;
    for (++i; i < end && is_space(text[i]); ++i) {
    }
    if ((i == end || text[i] == '#') && std::find(fields.begin(), fields.end(), key) != fields.end()) return true;
  }
  return false;
}

std::string text_format_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace octet::tao
