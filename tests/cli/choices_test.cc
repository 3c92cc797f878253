// Flags that take one of a few words: a wrong one is named with what there is, of every flag of every command.
#include <gmock/gmock.h>

#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "cli/program_fixture.h"

namespace octet::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class Choices : public Cli {
 protected:
  // Of a list of commands in `help`; "convert spec" for the kinds of one.
  std::vector<std::string> commands(const std::string& help, const std::string& before = "") const {
    std::vector<std::string> out;
    std::istringstream lines(help.substr(help.find("\ncommands:\n") + 11));
    for (std::string line; std::getline(lines, line) && line.rfind("  ", 0) == 0;) {
      if (line.find("(not in this build)") != std::string::npos) continue;
      const std::string name = before + line.substr(2, line.find(' ', 2) - 2);
      const std::string own = octet(name + " --help").out;
      if (own.find("\ncommands:\n") == std::string::npos) {
        out.push_back(name);
      } else {
        for (const std::string& kind : commands(own, name + " ")) out.push_back(kind);
      }
    }
    return out;
  }
};

struct Choice {
  std::string flag, words;  // "--format", "voc|kitti|coco"
};

// The options of a help whose values are shown as words with | between them.
std::vector<Choice> choices(const std::string& help) {
  static const std::regex kOption(R"(\n  (?:-\w,)?(--[\w-]+)\S* ([\w.]+(?:\|[\w.]+)+)(?=[\s=]))");
  std::vector<Choice> out;
  for (std::sregex_iterator match(help.begin(), help.end(), kOption), end; match != end; ++match)
    if ((*match)[2] != "X|Xms") out.push_back({(*match)[1], (*match)[2]});
  return out;
}

TEST_F(Choices, AWrongWordIsNamedWithWhatThereIs) {
  std::vector<std::string> checked;
  std::set<std::string> seen;  // the same option of several commands is one piece of code
  for (const std::string& command : commands(octet("--help").out))
    for (const Choice& choice : choices(octet(command + " --help").out)) {
      checked.push_back(command + " " + choice.flag);
      if (!seen.insert(choice.flag + " " + choice.words).second) continue;
      const Outcome outcome = octet(command + " " + choice.flag + " no_such_word");
      EXPECT_EQ(outcome.code, 2) << command << ' ' << choice.flag;
      const std::string list = std::regex_replace(choice.words, std::regex(R"(\|)"), ", ");
      EXPECT_EQ(outcome.err, "octet: " + command + ": " + choice.flag + ": 'no_such_word' is none of " + list +
                                 "; see 'octet " + command + " --help'\n");
    }
  for (const char* flag : {"scenes --format", "convert dataset --partition_mode", "convert spec --stage",
                           "prune --normalizer", "compile --isa", "export --opset", "bench --compare"})
    EXPECT_THAT(checked, Contains(flag));
  if (can_train()) {
    for (const char* flag : {"train --stage", "quantize --method", "evaluate --runtime"})
      EXPECT_THAT(checked, Contains(flag));
  }
}

TEST_F(Choices, TheNearestIsNamed) {
  EXPECT_THAT(octet("scenes --format kiti").err,
              HasSubstr("'kiti' is none of voc, kitti, coco; did you mean 'kitti'?"));
  EXPECT_THAT(octet("bench --compare openvino,onnx-runtime").err, HasSubstr("did you mean 'onnxruntime'?"));
}

}  // namespace
}  // namespace octet::test
