#include "base/printable.h"

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>

namespace octet {
namespace {

TEST(Printable, OrdinaryTextStays) {
  const std::string text = "conv1/weight \\ caf\xc3\xa9 \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x90\x99 \"quoted\" 50 %";
  EXPECT_EQ(printable_line(text), text);
  EXPECT_EQ(printable_text(text), text);
  EXPECT_EQ(printable_line(""), "");
}

TEST(Printable, WhatTerminalsObeyIsWrittenOut) {
  EXPECT_EQ(printable_line("a\x1b[31mred\x07"), "a\\u001b[31mred\\u0007");
  EXPECT_EQ(printable_line(std::string("nul\0 del\x7f cr\r", 13)), "nul\\u0000 del\\u007f cr\\u000d");
  EXPECT_EQ(printable_line("c1 \xc2\x9b"
                           "2J"),
            "c1 \\u009b2J");
  EXPECT_EQ(printable_line("cod\xe2\x80\xaexfdp"), "cod\\u202exfdp");
  EXPECT_EQ(printable_line("two\nlines\tand a tab"), "two\\nlines\\tand a tab");
  EXPECT_EQ(printable_text("two\nlines\tand a tab\r"), "two\nlines\tand a tab\\u000d");
}

TEST(Printable, WhatIsNoUtf8IsWrittenOut) {
  EXPECT_EQ(printable_line("\xff\x9b"
                           "A"),
            "\\xff\\x9bA");
  EXPECT_EQ(printable_line("\xc0\x9b"), "\\xc0\\x9b") << "a long form of ESC";
  EXPECT_EQ(printable_line("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
  EXPECT_EQ(printable_line("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable_line("cut \xe6\xbc"), "cut \\xe6\\xbc");
}

TEST(Printable, ABufferWaitsForTheRestOfACharacter) {
  std::ostringstream collected;
  PrintableBuffer buffer(*collected.rdbuf());
  std::ostream out(&buffer);
  for (const char c : std::string("\xe6\xbc\xa2\x1b|")) out.put(c);
  out << "\xc2"
      << "\x9b"
      << "\xe2\x80"
      << "\xae\n";
  EXPECT_EQ(collected.str(), "\xe6\xbc\xa2\\u001b|\\u009b\\u202e\n");
  out << "\xe2\x80" << std::flush;
  EXPECT_EQ(collected.str(), "\xe6\xbc\xa2\\u001b|\\u009b\\u202e\n\\xe2\\x80");
}

}  // namespace
}  // namespace octet
