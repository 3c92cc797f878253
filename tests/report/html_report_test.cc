#include "report/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "base/error.h"
#include "base/files.h"
#include "temp_directory.h"

namespace octet::report {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class HtmlReportTest : public DirectoryTest {};

// Complains about elements that are not closed in order; enough of a parser for what render_html() writes.
std::string structure_error(const std::string& html) {
  static const std::vector<std::string> kVoid = {"meta", "img", "!doctype"};
  std::vector<std::string> open;
  const std::string body = std::regex_replace(html, std::regex("<style>[^<]*</style>"), "");
  static const std::regex tag("<(/?)([!a-zA-Z0-9]+)((?:[^>\"]|\"[^\"]*\")*?)(/?)>");
  for (std::sregex_iterator it(body.begin(), body.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if ((*it)[4] == "/" || std::ranges::count(kVoid, name)) continue;
    if ((*it)[1] == "") {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

Report full_report() {
  Report report{
      .title = "Quick start <ResNet-20>", .subtitle = "a & b", .created = "2026-11-21 14:03", .cpu = "CPU \"X\""};
  report.highlights = {{"INT8 top-1", "92.3 %", "0.1 below float", Tone::kGood}};
  report.facts = {{"seed", "1"}};
  report.tables = {{"Stages", {"stage", "top-1"}, {{"float", "92.4"}, {"<script>"}}, "measured once"}};
  report.curves = {
      {"Loss", "epoch", "loss", {{"train", {1, 2, 3}, {1, NAN, 0.3}}, {"val", {1, 2, 3}, {0.9, 0.5, 0.4}}}}};
  report.bars = {{"Latency", "ms", {{"conv1", 0, 0.5}, {"conv2", 0, 1}}, {"INT8"}, ""},
                 {"Ranges", "", {{"x", -1, 1, "", 7}, {"bad", NAN, 1}}, {}, ""}};
  report.matrices = {{"Confusion", "is", "taken for", {"<a>", "b"}, {{9, 1}, {0, 4}}, "images"}};
  report.strips = {{"Ranges", {{"x", {5, 3, 0, 1}, 2, 1, "cut at 1"}, {"empty", {}, 0, 0, ""}}, "logarithms"}};
  report.pictures = {{"Digits", "image/png", "abcd"}};
  report.notes = {"one 'note'"};
  return report;
}

TEST(HtmlReport, IsWellFormedAndEscaped) {
  const std::string html = render_html(full_report());
  EXPECT_EQ(structure_error(html), "");
  EXPECT_THAT(html, HasSubstr("Quick start &lt;ResNet-20&gt;"));
  EXPECT_THAT(html, HasSubstr("CPU &quot;X&quot;"));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("data:image/png;base64,YWJjZA=="));
  EXPECT_EQ(structure_error(render_html({})), "");
}

TEST(HtmlReport, ShadesAMatrixByShareOfTheRow) {
  const std::string html = render_html(full_report());
  EXPECT_THAT(html, HasSubstr("<th>&lt;a&gt;</th><td class=\"n\" style=\"--c:var(--s1);--share:95%\">9</td>"));
  EXPECT_THAT(html, HasSubstr("--c:var(--s2);--share:32%\">1</td>"));
  EXPECT_THAT(html, HasSubstr("--share:0%\"></td>"));
}

TEST(HtmlReport, CutsAStripWhereItIsCut) {
  const std::string html = render_html(full_report());
  EXPECT_THAT(html, HasSubstr("<line x1=\"160.0\" x2=\"160.0\""));
  EXPECT_THAT(html, HasSubstr("cut at 1"));
}

TEST(HtmlReport, NeedsNothingFromOutside) {
  const std::string html = render_html(full_report());
  for (const char* outside : {"<script", "http:", "https:", "<link", "@import", "url("})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST(HtmlReport, ColumnsOfNumbersAreSetToTheRight) {
  const std::string html = render_html(full_report());
  EXPECT_THAT(html, HasSubstr("<td class=\"n\">92.4</td>"));
  EXPECT_THAT(html, HasSubstr("<td>float</td>"));
}

TEST(HtmlReport, BarsShareOneScale) {
  const std::string html = render_html(full_report());
  EXPECT_THAT(html, HasSubstr("left:0.00%;width:50.00%"));
  EXPECT_THAT(html, HasSubstr("left:0.00%;width:100.00%"));
  EXPECT_THAT(html, HasSubstr("-1 to 1"));
}

TEST(HtmlReport, LongTablesAreFolded) {
  Report report{.title = "t"};
  report.tables = {{"Layers", {"name"}, std::vector<std::vector<std::string>>(30, {"conv"}), ""}};
  EXPECT_THAT(render_html(report), HasSubstr("<summary>30 rows</summary>"));
}

TEST_F(HtmlReportTest, ReplacesAnOlderFile) {
  const auto path = directory_ / "report.html";
  write_report(path, {.title = "one"});
  write_report(path, {.title = "two"});
  EXPECT_THAT(read_file(path), HasSubstr("<h1>two</h1>"));
  EXPECT_THROW(write_report(directory_ / "none" / "report.html", {}), UserError);
}

TEST(SvgChart, EpochsHaveNoFractions) {
  const std::string epochs = svg_line_chart({"c", "epoch", "", {{"s", {1, 2, 3}, {10, 20, 30}}}});
  EXPECT_THAT(epochs, HasSubstr(">2</text>"));
  EXPECT_THAT(epochs, Not(HasSubstr(">1.5</text>")));
  EXPECT_THAT(svg_line_chart({"c", "x", "", {{"s", {1, 2.5, 3}, {10, 20, 30}}}}), HasSubstr(">1.5</text>"));
}

TEST(SvgChart, GapsWherePointsAreMissing) {
  const std::string svg = svg_line_chart({"c", "x", "y", {{"s", {0, 1, 2, 3}, {0, 1, NAN, 3}}}});
  static const std::regex path("d=\"(M[^\"]*)\"");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(svg, match, path));
  const std::string d = match[1];
  EXPECT_EQ(std::ranges::count(d, 'M'), 2);
  EXPECT_EQ(std::ranges::count(d, 'L'), 1);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SvgChart, SurvivesDegenerateData) {
  for (const auto& y :
       std::vector<std::vector<double>>{{}, {5}, {0, 0}, {NAN}, {1e300, -1e300}, {1e-300, 1e300}, {-1, 0}})
    for (bool log : {false, true}) {
      std::vector<double> x(y.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
      const std::string svg = svg_line_chart({"c", "x", "y", {{"s", x, y}}, log});
      EXPECT_THAT(svg, Not(HasSubstr("nan")));
      EXPECT_THAT(svg, Not(HasSubstr("inf")));
      EXPECT_EQ(structure_error(svg), "");
    }
}

TEST(SvgChart, LongSeriesAreThinnedButKeepTheirEnd) {
  Series series{"s", {}, {}};
  for (int i = 0; i < 100000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i);
  }
  const std::string svg = svg_line_chart({"c", "x", "y", {series}});
  EXPECT_LT(svg.size(), 40000u);
  EXPECT_THAT(svg, HasSubstr("L546.0 12.0\""));  // the upper right corner
}

TEST(NiceTicks, AreRoundAndCover) {
  EXPECT_THAT(nice_ticks(0, 10), testing::ElementsAre(0, 2, 4, 6, 8, 10));
  for (const auto& [low, high] : {std::pair{0.123, 0.987}, {-7.0, 1234.0}, {91.2, 91.3}, {1.0, 1.0000001}}) {
    const std::vector<double> ticks = nice_ticks(low, high);
    EXPECT_GE(ticks.size(), 3u);
    EXPECT_LE(ticks.size(), 9u);
    EXPECT_LE(ticks.front(), low + 1e-9);
    EXPECT_GE(ticks.back(), high - 1e-9);
  }
}

}  // namespace
}  // namespace octet::report
