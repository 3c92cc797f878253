#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "schema/tree.h"

namespace octet::schema {
namespace {

std::string message_of(const std::string& text) {
  try {
    parse_yaml(text, "f.yaml");
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    return e.what();
  }
  return "(accepted)";
}

TEST(Yaml, KeepsPositionsAndQuotes) {
  const Node root = parse_yaml("a: 1\nb:\n  - x\n  - \"2\"\nc: {d: [3, 4]}\n", "f.yaml");
  ASSERT_EQ(root.kind, Node::Kind::kMap);
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.find("a")->location, "f.yaml:1:4");
  EXPECT_EQ(root.entries[1].location, "f.yaml:2:1");
  const Node* b = root.find("b");
  ASSERT_EQ(b->items.size(), 2u);
  EXPECT_EQ(b->items[0].location, "f.yaml:3:5");
  EXPECT_FALSE(b->items[0].quoted);
  EXPECT_TRUE(b->items[1].quoted);
  EXPECT_EQ(root.find("c")->find("d")->items[1].text, "4");
  EXPECT_EQ(root.find("z"), nullptr);
}

TEST(Yaml, EmptyTextIsAnEmptyFile) {
  EXPECT_EQ(parse_yaml("", "f.yaml").kind, Node::Kind::kNull);
  EXPECT_EQ(parse_yaml("# only a comment\n", "f.yaml").kind, Node::Kind::kNull);
}

TEST(Yaml, AliasesAreExpanded) {
  const Node root = parse_yaml("a: &x {k: 1}\nb: *x\n", "f.yaml");
  EXPECT_EQ(root.find("b")->find("k")->text, "1");
  EXPECT_EQ(root.find("b")->location, "f.yaml:2:4");
}

TEST(Yaml, RefusesWhatIsNotOneCleanDocument) {
  EXPECT_EQ(message_of("a: 1\nb: 2\na: 3\n"), "f.yaml:3:1: the key 'a' was given before, at f.yaml:1:1");
  EXPECT_EQ(message_of("a: [1, 2\nb: 3\n").substr(0, 7), "f.yaml:");
  EXPECT_NE(message_of("a: [1, 2\n").find("not valid YAML"), std::string::npos);
  EXPECT_NE(message_of("a: 1\n---\nb: 2\n").find("second document"), std::string::npos);
  EXPECT_EQ(message_of("[a]: 1\n"), "f.yaml:1:1: a key must be plain text, not a list or a section");
  EXPECT_EQ(message_of("a: &x 1\n<<: *x\n").substr(0, 23), "f.yaml:2:1: merge keys ");
  EXPECT_EQ(message_of("a: !!int 3\n").substr(0, 11), "f.yaml:1:4:");
  EXPECT_EQ(message_of(std::string("a: \xff\n")),
            "f.yaml:1:4: is not text (byte 255); an experiment file is UTF-8 YAML");
  EXPECT_NE(message_of(std::string("a: \0\n", 5)).find("is not text (byte 0)"), std::string::npos);
  EXPECT_NE(message_of(std::string((1 << 20) + 1, ' ')).find("larger than 1 MiB"), std::string::npos);
}

TEST(Yaml, RefusesBombs) {
  // Nine lists of nine aliases each: 9^9 items when expanded.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [";
    for (int k = 0; k < 9; ++k) bomb += (k ? ", " : "") + before;
    bomb += "]\n";
  }
  EXPECT_NE(message_of(bomb).find("more than 100000 entries"), std::string::npos);
  EXPECT_NE(message_of(std::string(100'000, '[')).find("nested too deeply"), std::string::npos);
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_NE(message_of(deep).find("nested more than 32 deep"), std::string::npos);
  EXPECT_NE(message_of("a: &a [*a]\n").find("f.yaml:1:"), std::string::npos);
}

TEST(Override, ReplacesAndAdds) {
  Node root = parse_yaml("train: {epochs: 5}\n", "f.yaml");
  apply_override(root, "train.epochs=3");
  apply_override(root, "data.mean=[0.1, 0.2]");
  apply_override(root, "train.optimizer.lr=0.5");
  EXPECT_EQ(root.find("train")->find("epochs")->text, "3");
  EXPECT_EQ(root.find("train")->find("epochs")->location, "--set train.epochs=3");
  EXPECT_EQ(root.find("data")->find("mean")->items[1].text, "0.2");
  EXPECT_EQ(root.find("train")->find("optimizer")->find("lr")->text, "0.5");
}

TEST(Override, ReachesTheSectionsOfAList) {
  Node root = parse_yaml("data: {train: [{path: a}, {path: b, limit: 9}], input: [3, 8, 8]}\n", "f.yaml");
  const auto source = [&](size_t i) -> const Node& { return root.find("data")->find("train")->items.at(i); };
  apply_override(root, "data.train.limit=5");
  EXPECT_EQ(source(0).find("limit")->text, "5");
  EXPECT_EQ(source(1).find("limit")->text, "5");
  apply_override(root, "data.train[1].limit=7");
  EXPECT_EQ(source(0).find("limit")->text, "5");
  EXPECT_EQ(source(1).find("limit")->text, "7");
  EXPECT_EQ(source(1).find("path")->text, "b");
  apply_override(root, "data.train.augment.mirror=true");  // a section that the items do not have yet
  EXPECT_EQ(source(0).find("augment")->find("mirror")->text, "true");
  apply_override(root, "data.input[2]=16");
  EXPECT_EQ(root.find("data")->find("input")->items[2].text, "16");
  EXPECT_EQ(root.find("data")->find("input")->items[1].text, "8");
  apply_override(root, "data.train=[{path: c}]");  // the list itself is replaced
  EXPECT_EQ(root.find("data")->find("train")->items.size(), 1u);
}

TEST(Override, PlacesThatThereAreNotAreNamed) {
  const struct {
    const char *assignment, *complaint;
  } cases[] = {
      {"data.train[2].limit=1", "'data.train' is a list of 2 at f.yaml:1:15, counted from 0"},
      {"data.path[0]=1", "'data.path' is 'x', no list"},
      {"data.missing[0].limit=1", "'data.missing' is nothing, no list"},
      {"data.train[].limit=1", "'[]' is no place in a list; expected a number in brackets, as in data.train[0]"},
      {"data.train[=1", "'[' is no place in a list"},
      {"data.train[1=1", "'[1' is no place in a list"},
      {"data.train[-1].limit=1", "'[-1]' is no place in a list"},
      {"data.train[0]x.limit=1", "'[0]x' is no place in a list"},
      {"[0].limit=1", "has an empty part"},
      {"data.input.limit=1", "'data.input' is a list at f.yaml:1:55, so it has no key 'limit'"},
  };
  for (const auto& [assignment, complaint] : cases) {
    Node root = parse_yaml("data: {train: [{path: a}, {path: b}], path: x, input: [3, 8]}\n", "f.yaml");
    try {
      apply_override(root, assignment);
      ADD_FAILURE() << assignment;
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(complaint)) << assignment;
      EXPECT_EQ(e.code(), ExitCode::kUsage);
    }
  }
}

TEST(Override, RefusesWhatIsMalformed) {
  Node root = parse_yaml("train: {epochs: 5}\n", "f.yaml");
  EXPECT_THROW(apply_override(root, "train.epochs"), UserError);
  EXPECT_THROW(apply_override(root, "=3"), UserError);
  EXPECT_THROW(apply_override(root, "train..epochs=3"), UserError);
  EXPECT_THROW(apply_override(root, "train.epochs.more=3"), UserError);
  EXPECT_THROW(apply_override(root, "train.epochs=[3"), UserError);
}

}  // namespace
}  // namespace octet::schema
