// What a layer can say of its options, on options that no layer has.
#include "schema/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "schema/reference.h"
#include "schema/tree.h"

namespace octet::schema_test {

using schema::EnumName;
using schema::Section;

enum class Color { kRed, kGreen };
std::span<const EnumName<Color>> enum_names(Color);
OCTET_ENUM_NAMES(Color, {Color::kRed, "red"}, {Color::kGreen, "green"})

struct Kettle {
  Color color = Color::kRed;
  bool whistles = false;  // key `sound`
  std::string maker;      // of a registry
  std::filesystem::path manual;
  std::array<int64_t, 3> size = {1, 2, 3};
  double coldest = 10, hottest = 90;  // keys of the section `water`
};

void describe(Section& s, Kettle& kettle) {
  s.field("color", kettle.color).help("Of the lid.");
  s.choice("sound", kettle.whistles, {{false, "none"}, {true, "whistle"}}).help("When it boils.");
  s.choice("maker", kettle.maker, {{"", "any"}, {"acme", "acme"}}).help("Who made it.");
  s.field("manual", kettle.manual).help("A file.");
  s.field("size", kettle.size).range(1, 9).length(3, 3).help("In three directions.");
  s.section("water", [&](Section& water) {
     water.field("coldest", kettle.coldest).help("Least.");
     water.field("hottest", kettle.hottest).help("Most.");
   }).help("Temperatures.");
  s.rule("water.hottest", [&kettle] { return kettle.hottest < kettle.coldest ? "is colder than the coldest" : ""; });
}

Kettle read(const std::string& text) {
  Kettle kettle;
  Section section;
  describe(section, kettle);
  schema::read_section(section, schema::parse_yaml(text, "k.yaml"), "", {});
  return kettle;
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    return e.what();
  }
  return "(accepted)";
}

std::string write(Kettle kettle) {
  Section section;
  describe(section, kettle);
  return schema::write_section(section);
}

TEST(Schema, ReadsAndWritesEveryKindOfMember) {
  EXPECT_EQ(
      write({}),
      "color: red\nsound: none\nmaker: any\nmanual: \"\"\nsize: [1, 2, 3]\nwater:\n  coldest: 10\n  hottest: 90\n");
  const std::string text =
      "color: green\nsound: whistle\nmaker: acme\nmanual: a/b.txt\nsize: [4, 5, 6]\nwater:\n  coldest: 20\n  hottest: "
      "30\n";
  const Kettle kettle = read(text);
  EXPECT_EQ(kettle.color, Color::kGreen);
  EXPECT_TRUE(kettle.whistles);
  EXPECT_EQ(kettle.maker, "acme");
  EXPECT_EQ(kettle.manual, "a/b.txt");
  EXPECT_EQ(kettle.size, (std::array<int64_t, 3>{4, 5, 6}));
  EXPECT_EQ(kettle.hottest, 30);
  EXPECT_EQ(write(kettle), text);
}

struct Cup {
  double volume = 1;
  std::string glaze;
};
void describe(Section& s, Cup& cup) {
  s.field("volume", cup.volume).range(0, 5).help("How much.");
  s.field("glaze", cup.glaze).help("Its color.");
}
struct Shelf {
  double volume = 2;
  schema::NamedList<Cup> cups;
  schema::NamedList<std::string> labels;
};
void describe(Section& s, Shelf& shelf) {
  s.field("volume", shelf.volume).help("Of all cups.");
  s.map<Cup>("cups", shelf.cups, [&shelf] { return Cup{.volume = shelf.volume, .glaze = {}}; }).help("By name.");
  s.field("labels", shelf.labels).help("Of the boards.");
}

std::string shelf(const std::string& text) {
  Shelf shelf;
  Section section;
  describe(section, shelf);
  try {
    schema::read_section(section, schema::parse_yaml(text, "s.yaml"), "", {});
  } catch (const UserError& e) {
    return e.what();
  }
  return schema::write_section(section);
}

TEST(Schema, MapsKeepTheUsersNamesInOrderAndStartFromTheKeysAbove) {
  const std::string written =
      "volume: 3\ncups:\n  red:\n    volume: 3\n    glaze: shiny\n  \"a: b\":\n    volume: 4\n    glaze: \"\"\n"
      "labels:\n  top: \"12\"\n  a: b\n";
  // The map stands above the key that it starts from.
  EXPECT_EQ(shelf("cups: {red: {glaze: shiny}, 'a: b': {volume: 4}}\nlabels: {top: 12, a: b}\nvolume: 3\n"), written);
  EXPECT_EQ(shelf(written), written);
  EXPECT_EQ(shelf(""), "volume: 2\n");
  EXPECT_EQ(shelf("cups: {}\nlabels: {}\n"), "volume: 2\n");
}

TEST(Schema, WhatIsWrongInAMapIsNamedWithItsKey) {
  EXPECT_EQ(shelf("cups:\n  red: {volume: 9}\n"), "s.yaml:2:17: 'cups.red.volume' must be 0 to 5, found 9");
  EXPECT_EQ(shelf("cups: {red: {volme: 1}}\n"),
            "s.yaml:1:14: unknown key 'volme' in 'cups.red'; did you mean 'volume'?");
  EXPECT_EQ(shelf("cups: [red]\n"), "s.yaml:1:7: 'cups' takes a map of sections, found a list");
  EXPECT_EQ(shelf("labels: {top: [1]}\n"), "s.yaml:1:15: 'labels.top' takes a map of texts, found a list");
  EXPECT_EQ(shelf("glaze: 1\n"), "s.yaml:1:1: unknown key 'glaze' in the file; it belongs in 'cups'");
}

TEST(Schema, TheReferenceHasTheKeysOfAMapOnce) {
  Shelf shelf;
  Section section;
  describe(section, shelf);
  const std::string reference = schema::reference_markdown(section);
  EXPECT_THAT(reference, testing::HasSubstr("| `cups` | map of sections | `{}` |  | By name. |"));
  EXPECT_THAT(reference, testing::HasSubstr("## `cups.NAME`"));
  EXPECT_THAT(reference, testing::HasSubstr("| `labels` | map of texts | `{}` |  | Of the boards. |"));
}

TEST(Schema, NamesOfChoicesStandInMessages) {
  EXPECT_EQ(error_of("sound: whistel\n"),
            "k.yaml:1:8: 'sound' is one of none, whistle; found 'whistel'; did you mean 'whistle'?");
  EXPECT_EQ(error_of("size: [1, 2]\n"), "k.yaml:1:7: 'size' takes 3 values, found 2");
}

TEST(Schema, RulesAcrossKeysNameTheNearestPlaceInTheFile) {
  const std::string complaint = "'water.hottest' is colder than the coldest";
  EXPECT_EQ(error_of("color: red\nwater: {hottest: 5}\n"), "k.yaml:2:18: " + complaint);
  EXPECT_EQ(error_of("color: red\nwater: {coldest: 95}\n"), "k.yaml:2:8: " + complaint);
}

TEST(Schema, ReferenceHasATableForEachSection) {
  Kettle kettle;
  Section section;
  describe(section, kettle);
  EXPECT_THAT(
      schema::reference_markdown(section),
      testing::AllOf(testing::HasSubstr("| `sound` | none or whistle | `none` |  | When it boils. |"),
                     testing::HasSubstr("| `size` | list of integers | `[1, 2, 3]` | 1 to 9 | In three directions. |"),
                     testing::HasSubstr("## `water`\n\nTemperatures.")));
  EXPECT_THROW(schema::section_help(section, "waiter", "the kettle"), UserError);
}

TEST(Schema, EnumerationsAreFoundByName) {
  EXPECT_EQ(schema::parse_enum<Color>("color", "green"), Color::kGreen);
  EXPECT_STREQ(schema::enum_name(Color::kRed), "red");
  EXPECT_THAT([] { schema::parse_enum<Color>("color", "grren"); },
              testing::ThrowsMessage<UserError>("unknown color 'grren'; use red or green; did you mean 'green'?"));
}

}  // namespace octet::schema_test
