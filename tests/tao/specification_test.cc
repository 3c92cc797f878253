// Reading and writing by a description of messages that no network has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tao/read.h"
#include "tao/reference.h"
#include "tao/text_format.h"
#include "tao/write.h"

namespace octet::tao {
namespace {

Message garden() {
  Message source, rate, step, weight, flower, plot, m;
  source.text("path").key(".path").means("Where.");
  source.number("weight").range(0, 10).key(".weight").means("How often.");
  rate.number("low").key("train.low").means("Least.");
  step.integer("every").key("train.every").means("Period.");
  weight.text("name").hooked().means("Which.");
  weight.number("first").key(".first").means("At first.");
  flower.text("name").hooked().means("Name.");
  flower.number("height").key(".height").means("In meters.");
  flower.message("weights", std::move(weight), Count::kList)
      .named_by("name", {{"leaf", "leaves"}, {"stem", "stems"}})
      .key(".*")
      .means("Weights.");
  plot.number("width").key(".width").means("In meters.");
  m.integer("seed").range(0).key("seed").also("data.seed").means("Seed.");
  m.number("angle").range(0, 360).times(1.0 / 360).key("turns").means("In degrees.");
  m.flag("dry").otherwise("false").key("dry").means("No water.");
  m.choice("mode", {{"SLOW", "slow"}, {"FAST", "fast"}}).key("mode").means("Speed.");
  m.message("sources", std::move(source), Count::kList).key("data.train[]").means("Seeds.");
  m.message("smooth", std::move(rate)).one_of("rate").sets("train.type", "smooth").means("Slowly.");
  m.message("steps", std::move(step)).one_of("rate").sets("train.type", "steps").means("In steps.");
  m.text("renamed", Count::kMap).key("data.renamed.*").means("Other names.");
  m.message("flowers", std::move(flower), Count::kList)
      .named_by("name")
      .key("bed.target_class_config.*")
      .means("By name.");
  m.message("plots", std::move(plot), Count::kMap).key("field.target_class_config.*").means("By name.");
  m.integer("sizes", Count::kList).key("sizes").means("Sizes.");
  m.integer("rows").required().key("shape[0]").means("Rows.");
  m.integer("columns").otherwise("0x10").key("shape[1]").means("Columns.");
  m.number("luck").unused("there is none", "0.5").means("Luck.");
  Message moon;
  moon.text("phase").means("Of the moon.");
  m.message("moon", std::move(moon)).unused("it does not matter").means("Moon.");
  return m;
}

Experiment read(const std::string& text) {
  return read_specification(garden(), parse_text_format(text, "g"));
}
std::string yaml_of(const std::string& text) {
  return schema::write_yaml(read("rows: 1 columns: 2 dry: f\n" + text).tree);
}
std::string error_of(const std::string& text) {
  try {
    read("rows: 1\n" + text);
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    return e.what();
  }
  return "(accepted)";
}

constexpr const char* kWhole = R"(rows: 3
seed: 42
angle: 90
dry: true
mode: FAST
sources { path: "a" weight: 2 }
sources { path: "b/*" }
steps { every: 7 }
renamed { key: "dotted.name" value: "x" }
renamed { key: "y" value: "true" }
flowers { name: "rose" height: 1.5f weights { name: "stem" first: 1 } }
plots { key: "south" value { width: 4 } }
sizes: [4, 0x5]
sizes: 06
)";

TEST(Specification, PutsEveryKindOfFieldUnderItsKey) {
  EXPECT_EQ(schema::write_yaml(read(kWhole).tree), R"(seed: 42
data:
  seed: 42
  train:
    - path: a
      weight: 2
    - path: "b/*"
  renamed:
    dotted.name: x
    y: true
turns: 0.25
dry: true
mode: fast
train:
  type: steps
  every: 7
bed:
  target_class_config:
    rose:
      height: 1.5
      stems:
        first: 1
field:
  target_class_config:
    south:
      width: 4
sizes: [4, 5, 6]
shape: [3, 16]
)");
}

TEST(Specification, WritesWhatReadsBackAsTheSame) {
  const Experiment once = read(kWhole);
  const std::string text = write_specification(garden(), Tree(once.tree), "classes");
  const Experiment twice = read_specification(garden(), parse_text_format(text, "again"));
  EXPECT_EQ(schema::write_yaml(twice.tree), schema::write_yaml(once.tree));
  EXPECT_THAT(text, testing::HasSubstr("steps {\n  every: 7\n}\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("smooth")));
}

TEST(Specification, WritesForEveryClassWhatTheSectionAroundSays) {
  const Tree experiment(schema::parse_yaml(
      "classes: [rose, 'ivy x']\nbed: {height: 2, stems: {first: 3}, target_class_config: {rose: {height: 1}}}", "e"));
  EXPECT_EQ(write_specification(garden(), experiment, "classes"),
            "flowers {\n  name: \"rose\"\n  height: 1\n  weights {\n    name: \"stem\"\n    first: 3\n  }\n}\n"
            "flowers {\n  name: \"ivy x\"\n  height: 2\n  weights {\n    name: \"stem\"\n    first: 3\n  }\n}\n");
}

TEST(Specification, KeepsThePlacesOfTheFile) {
  const schema::Node tree = read("rows: 1\nsources {\n  weight: 2\n}\nrenamed { key: \"a\" value: \"b\" }").tree;
  EXPECT_EQ(tree.find("data")->find("train")->items.at(0).find("weight")->location, "g:3:11");
  EXPECT_EQ(tree.find("data")->find("renamed")->entries.at(0).location, "g:5:16");
  EXPECT_EQ(tree.find("shape")->items.at(1).location, "g:1:1");  // what TAO takes where a field is absent
}

TEST(Specification, NamesWhatIsNotUsedOnce) {
  const Experiment experiment = read("rows: 1\nluck: 0.4\nmoon { phase: 'new' }");
  ASSERT_EQ(experiment.unused.size(), 2U);
  EXPECT_EQ(experiment.unused[0].field, "luck");
  EXPECT_EQ(experiment.unused[0].location, "g:2:1");
  EXPECT_EQ(experiment.unused[0].reason, "there is none");
  EXPECT_EQ(experiment.unused[1].field, "moon");
  EXPECT_TRUE(read("rows: 1 luck: .5").unused.empty());  // as Octet does it anyway
}

TEST(Specification, NumbersComeInAllForms) {
  EXPECT_THAT(yaml_of("angle: 36e1"), testing::HasSubstr("turns: 1\n"));
  EXPECT_THAT(yaml_of("angle: 180.f"), testing::HasSubstr("turns: 0.5\n"));
  EXPECT_THAT(yaml_of("angle: 0xB4"), testing::HasSubstr("turns: 0.5\n"));
  EXPECT_THAT(yaml_of("mode: 1"), testing::HasSubstr("mode: fast\n"));
  EXPECT_THAT(yaml_of("seed: 010"), testing::HasSubstr("seed: 8\n"));
}

struct Mistake {
  const char *text, *message;
};
class SpecificationError : public testing::TestWithParam<Mistake> {};

TEST_P(SpecificationError, IsNamedWithItsPlace) {
  EXPECT_EQ(error_of(GetParam().text), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    , SpecificationError,
    testing::Values(
        Mistake{"  sed: 1", "g:2:3: unknown field 'sed' in the file; did you mean 'seed'?"},
        Mistake{"steps { low: 1 }", "g:2:9: unknown field 'low' in 'steps'; it belongs in 'smooth'"},
        Mistake{"steps { qqqqq: 1 }", "g:2:9: unknown field 'qqqqq' in 'steps'; known fields: every"},
        Mistake{"moon { phases: 'new' }", "g:2:8: unknown field 'phases' in 'moon'; did you mean 'phase'?"},
        Mistake{"mode: FAS", "g:2:7: 'mode' is one of SLOW, FAST; found 'FAS'; did you mean 'FAST'?"},
        Mistake{"mode: fast", "g:2:7: 'mode' is one of SLOW, FAST; found 'fast'; did you mean 'FAST'?"},
        Mistake{"mode: 2", "g:2:7: 'mode' is one of SLOW, FAST; found '2'"},
        Mistake{"mode: 'FAST'", "g:2:7: 'mode' takes a name without quotes, found the text 'FAST'"},
        Mistake{"seed: 1.5", "g:2:7: 'seed' takes an integer, found '1.5'"},
        Mistake{"seed: 'a'", "g:2:7: 'seed' takes an integer, found the text 'a'"},
        Mistake{"seed: -1", "g:2:7: 'seed' must be at least 0, found -1"},
        Mistake{"seed: 99999999999999999999", "g:2:7: 'seed' takes an integer, found '99999999999999999999'"},
        Mistake{"seed: { a: 1 }", "g:2:7: 'seed' takes an integer, found a section"},
        Mistake{"angle: 400", "g:2:8: 'angle' must be 0 to 360, found 400"},
        Mistake{"angle: inf", "g:2:8: 'angle' must be a finite number, found inf"},
        Mistake{"angle: nan", "g:2:8: 'angle' must be a finite number, found nan"},
        Mistake{"angle: 1e999", "g:2:8: 'angle' must be a finite number, found 1e999"},
        Mistake{"angle: 1x", "g:2:8: 'angle' takes a number, found '1x'"},
        Mistake{"dry: yes", "g:2:6: 'dry' takes true or false, found 'yes'"},
        Mistake{"sources { path: a }", "g:2:17: 'sources.path' takes a text in quotes, found 'a'"},
        Mistake{"sources: 1", "g:2:10: 'sources' takes a message in braces, found '1'"},
        Mistake{"seed: 1\nseed: 2", "g:3:1: the field 'seed' was given before, at g:2:1"},
        Mistake{"steps {}\nsmooth {}", "g:3:1: 'smooth' excludes 'steps', which is at g:2:1; take one of them out"},
        Mistake{"renamed { key: 'a' }", "g:2:9: an entry of the map 'renamed' needs a value"},
        Mistake{"renamed { value: 'a' }", "g:2:9: an entry of the map 'renamed' needs a key"},
        Mistake{"renamed { kee: 'a' }",
                "g:2:11: an entry of the map 'renamed' has the fields key and value, found 'kee'; did you mean 'key'?"},
        Mistake{"renamed { key: a value: 'b' }",
                "g:2:16: the key of an entry of 'renamed' is a text in quotes, found 'a'"},
        Mistake{"renamed { key: 'a' key: 'b' }",
                "g:2:20: the key of this entry of 'renamed' was given before, at g:2:11"},
        Mistake{"renamed { key: 'a' value: 'b' }\nrenamed { key: 'a' value: 'c' }",
                "g:3:11: 'renamed' has two entries for 'a'"},
        Mistake{"plots { key: 'a' value { widht: 1 } }",
                "g:2:26: unknown field 'widht' in 'plots{a}'; did you mean 'width'?"},
        Mistake{"flowers { height: 1 }", "g:2:9: an entry of 'flowers' needs a name"},
        Mistake{"flowers { name: 'a' }\nflowers { name: 'a' }", "g:3:1: 'flowers' has two entries for 'a'"},
        Mistake{"flowers { name: 'a' weights { name: 'leav' } }",
                "g:2:37: the name of an entry of 'flowers{a}.weights' is one of leaf, stem; found 'leav'; did you mean "
                "'leaf'?"},
        Mistake{"rows: 2", "g:2:1: the field 'rows' was given before, at g:1:1"}));

TEST(Specification, RequiresWhatHasNoDefault) {
  try {
    read("seed: 1");
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "g:1:1: the field 'rows' is missing in the file: Rows.");
  }
}

TEST(Specification, ReferenceHasEveryField) {
  const std::string text = reference_markdown(garden());
  EXPECT_THAT(text, testing::HasSubstr("| `angle` | number | 0 to 360 | In degrees. | `turns`, times 0.0027777777"));
  EXPECT_THAT(text, testing::HasSubstr("| `mode` | SLOW or FAST |  | Speed. | `mode` (slow, fast) |"));
  EXPECT_THAT(text,
              testing::HasSubstr("| `luck` | number |  | Luck. | none: there is none (`0.5` is what Octet does) |"));
  EXPECT_THAT(text, testing::HasSubstr("| `first` | number |  | At first. | `bed.target_class_config.*.*.first` |"));
  EXPECT_THAT(text, testing::HasSubstr("| `smooth` | message, one of rate |  | Slowly. | `train.type: smooth` |"));
  EXPECT_THAT(keys_of(garden()), testing::Contains("data.train[].weight"));
}

}  // namespace
}  // namespace octet::tao
