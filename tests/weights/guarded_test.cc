#include "weights/guarded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/error.h"

namespace octet::weights {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(GuardedTest, BringsTensorsBack) {
  const auto read = read_guarded(
      [] {
        return checkpoint::NamedTensors{{"a", ir::Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})},
                                        {"none", ir::Tensor::of<float>({0}, std::vector<float>{})}};
      },
      "f");
  EXPECT_EQ(read.at("a").to_floats(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read.at("a").shape(), (ir::Shape{2, 3}));
  EXPECT_EQ(read.at("none").size(), 0);
}

TEST(GuardedTest, ErrorsComeBackAsErrorsOfTheFile) {
  EXPECT_THAT([] { read_guarded([]() -> checkpoint::NamedTensors { fail("too small"); }, "f"); },
              ThrowsMessage<UserError>(HasSubstr("f: too small")));
  EXPECT_THAT([] { read_guarded([]() -> checkpoint::NamedTensors { throw std::bad_alloc(); }, "f"); },
              ThrowsMessage<UserError>(HasSubstr("f: it is damaged")));
}

TEST(GuardedTest, ACrashIsADamagedFile) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGKILL})
    EXPECT_THAT(
        [&] {
          read_guarded(
              [&]() -> checkpoint::NamedTensors {
                ::raise(signal);
                return {};
              },
              "f");
        },
        ThrowsMessage<UserError>(HasSubstr("f: is damaged: its reader broke off")));
}

}  // namespace
}  // namespace octet::weights
