// Protobuf's text format, as far as a parser without a schema sees it.
#include "tao/text_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octet::tao {
namespace {

using schema::Entry;
using schema::Node;

// The tree in one line: name(line:column)=value, texts in quotes.
std::string shown(const Node& message) {
  std::string out;
  for (const Entry& entry : message.entries) {
    out += (out.empty() ? "" : " ") + entry.key + "@" + entry.location.substr(2) + "=";
    if (entry.value.kind == Node::Kind::kMap)
      out += "{" + shown(entry.value) + "}";
    else
      out += entry.value.quoted ? "'" + entry.value.text + "'" : entry.value.text;
  }
  return out;
}
std::string tree_of(const std::string& text) {
  return shown(parse_text_format(text, "t"));
}
std::string format_error_of(const std::string& text) {
  try {
    parse_text_format(text, "t");
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    return e.what();
  }
  return "(accepted)";
}

TEST(TextFormat, ReadsMessagesInAllTheirForms) {
  EXPECT_EQ(tree_of("a { b: 1 } c: { d: 2 } e < f: 3 >"), "a@1:1={b@1:5=1} c@1:12={d@1:17=2} e@1:24={f@1:28=3}");
  EXPECT_EQ(tree_of("a{}b:<>"), "a@1:1={} b@1:4={}");
  EXPECT_EQ(tree_of("# nothing\n\n  a:1 # one\n b : 2\r\n"), "a@3:3=1 b@4:2=2");
  EXPECT_EQ(tree_of(""), "");
}

TEST(TextFormat, TakesCommasAndSemicolonsBetweenFields) {
  EXPECT_EQ(tree_of("a: 1, b: 2; c { d: 3, e: 4; }, f: 5"), "a@1:1=1 b@1:7=2 c@1:13={d@1:17=3 e@1:23=4} f@1:32=5");
}

TEST(TextFormat, ListsAreTheFieldAgainAndAgain) {
  EXPECT_EQ(tree_of("a: [1, -2, x] a: 4"), "a@1:1=1 a@1:1=-2 a@1:1=x a@1:15=4");
  EXPECT_EQ(tree_of("a [{b: 1}, <b: 2>] c: []"), "a@1:1={b@1:5=1} a@1:1={b@1:13=2}");
}

TEST(TextFormat, KeepsScalarsAsTheyAreWritten) {
  EXPECT_EQ(tree_of("a: 0x1F b: 017 c: -1.5e-3 d: .5f e: inf f: - nan g: FLOAT16 h: 2."),
            "a@1:1=0x1F b@1:9=017 c@1:16=-1.5e-3 d@1:27=.5f e@1:34=inf f@1:41=-nan g@1:50=FLOAT16 h@1:61=2.");
}

TEST(TextFormat, JoinsNeighboringTextsAndResolvesEscapes) {
  EXPECT_EQ(tree_of("a: 'it' \"'s\"\n  'one'"), "a@1:1='it'sone'");
  EXPECT_EQ(tree_of(R"(a: "\"\\\'\?\n\t\101\x41\u00e9\U0001F600")"), "a@1:1='\"\\'?\n\tAA\u00e9\U0001F600'");
  EXPECT_EQ(tree_of(R"(a: "\303\251")"), "a@1:1='\u00e9'");  // an e with an accent, byte by byte
}

TEST(TextFormat, WritesTextsThatReadBack) {
  for (const std::string text : {"", "plain", "it's \"quoted\" \\ and\nbroken\t\x01", "\u00e9"})
    EXPECT_EQ(parse_text_format("a: " + text_format_string(text), "t").entries.at(0).value.text, text);
}

TEST(TextFormat, ColumnsCountCharacters) {
  EXPECT_EQ(tree_of("a: \"\u00e9\u00e9\" b: 1"), "a@1:1='\u00e9\u00e9' b@1:9=1");
}

struct FormatMistake {
  const char *text, *message;
};
class TextFormatError : public testing::TestWithParam<FormatMistake> {};

TEST_P(TextFormatError, IsNamedWithItsPlace) {
  EXPECT_EQ(format_error_of(GetParam().text), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    , TextFormatError,
    testing::Values(
        FormatMistake{"a {\n  b: 1\n",
                      "t:3:1: the file ends within the message that begins at t:1:3; a '}' is missing"},
        FormatMistake{"a < b: 1 }", "t:1:10: expected the name of a field, found '}'; it closes nothing"},
        FormatMistake{"a: 1 }", "t:1:6: expected the name of a field, found '}'; it closes nothing"},
        FormatMistake{"a 1", "t:1:3: expected ':' or '{' behind 'a', found '1'"},
        FormatMistake{"a", "t:1:2: expected ':' or '{' behind 'a', found the end of the file"},
        FormatMistake{"a:\nb: 1", "t:2:2: expected the name of a field, found ':'"},
        FormatMistake{"a: ;", "t:1:4: expected a value of 'a', found ';'"},
        FormatMistake{"a: [1 2]", "t:1:7: expected ',' or ']' in the list of 'a', found '2'"},
        FormatMistake{"a: [1,]", "t:1:7: expected a value behind the comma, found ']'"},
        FormatMistake{"a: 'b\n'", "t:1:4: the text that begins here has no closing quote on its line"},
        FormatMistake{"a: \"b\\", "t:1:4: the text that begins here has no closing quote on its line"},
        FormatMistake{R"(a: "\q")", "t:1:5: unknown escape '\\q'; a backslash itself is written \\\\"},
        FormatMistake{R"(a: "\xg")", "t:1:5: the escape needs 1 hexadecimal digits"},
        FormatMistake{R"(a: "\ud800")", "t:1:5: the escape names no character"},
        FormatMistake{R"(a: "\777")", "t:1:5: the octal escape is more than a byte"},
        FormatMistake{R"(a: "\377")", "t:1:4: the escapes of this text make no UTF-8 text"},
        FormatMistake{R"(a: "\0")", "t:1:4: the escapes of this text make no UTF-8 text"},
        FormatMistake{
            "[ext.name]: 1",
            "t:1:1: expected the name of a field, found '['; extensions ([...]) are no fields of a specification"},
        FormatMistake{"a: 1 # \xff", "t:1:8: is not text (byte 255); an experiment file is UTF-8 protobuf text"}));

TEST(TextFormat, IsNestedOnlySoDeep) {
  std::string text, end;
  for (int i = 0; i < 32; ++i) text += "a {", end += "}";
  EXPECT_EQ(format_error_of(text + end), "(accepted)");
  EXPECT_EQ(format_error_of(text + "a {" + end + "}"), "t:1:99: messages are nested more than 32 deep");
}

TEST(TextFormat, HasOnlySoManyEntries) {
  std::string text;
  for (int i = 0; i < 100'001; ++i) text += "a:1\n";
  EXPECT_EQ(format_error_of(text), "t:100001:1: the file has more than 100000 entries");
}

TEST(TextFormat, IsToldApartFromYaml) {
  const std::vector<std::string> fields = {"model_config"};
  for (const char* const text : {"a {\n}", "# {\nseed: 1\nmodel_config {", "model_config: {\n  arch: 'resnet'\n}",
                                 "  model_config : { # the network\n", "a\n{ b: 1 }"})
    EXPECT_TRUE(looks_like_text_format(text, fields)) << text;
  for (const char* const text : {"", "seed: 42", "model: {arch: resnet18}", "model: {\n  arch: resnet18\n}",
                                 "# model_config {\na: 1", "model_config: {arch: resnet}", "- a {"})
    EXPECT_FALSE(looks_like_text_format(text, fields)) << text;
}

}  // namespace
}  // namespace octet::tao
