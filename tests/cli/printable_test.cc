// Whatever is in names, terminals are told nothing by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/program_fixture.h"

namespace {

using octet::test::Cli;
using octet::test::Outcome;
using testing::HasSubstr;

class Printable : public Cli {
 protected:
  static bool obeyed(const std::string& text) {
    return std::any_of(text.begin(), text.end(), [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; });
  }
  // A model whose names hold an escape sequence, a line feed and a C1 character, in the place of others as long.
  void write_odd_model() const {
    ASSERT_EQ(octet("models resnet20 -o m.onnx --input 1,8,8").code, 0);
    std::string bytes = read("m.onnx");
    const std::string plain = "logits", odd = "l\x1b\n\xc2\x9bs";
    ASSERT_EQ(plain.size(), odd.size());
    for (size_t at = 0; (at = bytes.find(plain, at)) != std::string::npos;) bytes.replace(at, plain.size(), odd);
    write("odd.onnx", bytes);
  }
};

TEST_F(Printable, NamesOfFilesAndOptions) {
  const std::string odd = "$(printf 'a\\033[31m\\nb\\177')";
  for (const std::string& command :
       {"inspect \"" + odd + "\"", "\"" + odd + "\"", "spec -e \"" + odd + "\"", "spec --set \"train." + odd + "=1\"",
        "models \"" + odd + "\" -o x.onnx", "models \"--" + odd + "\"", "models resnet20 -o \"" + odd + "\""}) {
    const Outcome done = octet(command);
    EXPECT_FALSE(obeyed(done.err)) << command << "\n" << done.err;
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
    EXPECT_THAT(done.err, HasSubstr("\\u001b[31m")) << command;
  }
}

TEST_F(Printable, NamesInModels) {
  write_odd_model();
  for (const std::string command : {"inspect odd.onnx", "inspect odd.onnx --text", "inspect odd.onnx --json -",
                                    "compile odd.onnx -o x.octet --layers", "bench odd.onnx --runs 1 --threads 1"}) {
    const Outcome done = octet(command);
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_FALSE(obeyed(done.out) || obeyed(done.err)) << command;
    EXPECT_THAT(done.out, testing::Not(HasSubstr("\xc2\x9b"))) << command;
  }
  EXPECT_THAT(octet("inspect odd.onnx").out, HasSubstr("l\\u001b\\n\\u009bs"));
  EXPECT_THAT(octet("inspect odd.onnx --json -").out, HasSubstr("\"l\\u001b\\n\\u009bs\""));
}

}  // namespace
