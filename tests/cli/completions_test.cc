// Completions and manual pages, as shells and man(1) take them.
#include <gmock/gmock.h>

#include <cstdlib>

#include "program_fixture.h"

namespace octet::test {
namespace {

using testing::HasSubstr;

class Completions : public Cli {
 protected:
  bool has(const std::string& tool) const { return std::system(("command -v " + tool + " >/dev/null").c_str()) == 0; }
  // What a shell command prints in the folder of the test.
  std::string shell(const std::string& line) const {
    write("line.sh", line);
    FILE* pipe = popen(("cd '" + folder_ + "' && bash line.sh 2>&1").c_str(), "r");
    std::string out;
    char buffer[4096];
    for (size_t n; pipe && (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
    if (pipe) pclose(pipe);
    return out;
  }
};

TEST_F(Completions, OfBash) {
  write("octet.bash", octet("completions bash").out);
  const auto completed = [&](const std::string& words) {
    return shell("source octet.bash; COMP_WORDS=(" + words +
                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _octet; echo \"${COMPREPLY[*]}\"");
  };
  EXPECT_EQ(completed("octet ev"), "evaluate\n");
  EXPECT_EQ(completed("octet help compl"), "completions\n");
  EXPECT_EQ(completed("octet convert ''"), "spec dataset images\n");
  EXPECT_THAT(completed("octet convert spec --out"), HasSubstr("--output_file"));
  EXPECT_EQ(completed("octet bench --mode ''"), "latency throughput\n");
  EXPECT_EQ(completed("octet bench --runs ''"), "\n") << "a number is not guessed";
  EXPECT_EQ(completed("octet completions z"), "zsh\n");
  if (can_train()) {
    EXPECT_THAT(completed("octet train --st"), HasSubstr("--stage"));
  }
}

TEST_F(Completions, OfZshAndFish) {
  write("_octet", octet("completions zsh").out);
  write("octet.fish", octet("completions fish").out);
  EXPECT_THAT(read("_octet"), HasSubstr("#compdef octet"));
  EXPECT_THAT(read("octet.fish"), HasSubstr("-l mode -x -a 'latency throughput'"));
  if (has("zsh")) {
    EXPECT_EQ(shell("zsh -n _octet"), "");
  }
  if (has("fish")) {
    EXPECT_EQ(shell("fish -c 'source octet.fish; complete -C \"octet completions z\"' | cut -f1"), "zsh\n");
  }
  EXPECT_EQ(octet("completions tcsh").code, 2);
}

TEST_F(Completions, ManualPagesHaveNoWarnings) {
  ASSERT_EQ(octet("man --folder pages").code, 0);
  EXPECT_THAT(read("pages/octet.1"), HasSubstr("octet\\-convert\\-spec"));
  EXPECT_EQ(octet("man convert spec").out, read("pages/octet-convert-spec.1"));
  EXPECT_THAT(octet("man bench").out, HasSubstr("\\fB\\-\\-mode\\fR"));
  EXPECT_THAT(octet("man bensh").err, HasSubstr("bench"));
  if (!has("groff")) GTEST_SKIP() << "groff is not installed";
  EXPECT_EQ(shell("for page in pages/*.1; do groff -man -ww -z -Tutf8 $page; done"), "");
  EXPECT_THAT(shell("groff -man -Tutf8 pages/octet-compile.1"), HasSubstr("octet-compile - "));
}

}  // namespace
}  // namespace octet::test
