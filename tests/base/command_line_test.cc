#include "base/command_line.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

TEST(CommandLine, CanBeTypedAgain) {
  EXPECT_EQ(command_line(), "");
  remember_command_line({"train", "-e", "my spec.yaml", "--set", "data.mean=[0.5,0.5]", "it's", ""});
  EXPECT_EQ(command_line(), R"(octet train -e 'my spec.yaml' --set 'data.mean=[0.5,0.5]' 'it'\''s' '')");
  remember_command_line({});
  EXPECT_EQ(command_line(), "octet");
}

}  // namespace
}  // namespace octet
