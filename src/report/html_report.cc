#include "report/html_report.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "base/files.h"
#include "report/format.h"
#include "report/html_style.h"
#include "report/text_table.h"

namespace octet::report {
namespace {

constexpr size_t kFoldRows = 24;
constexpr int kColors = 6;

std::string element(const char* tag, const std::string& text, const char* css_class = nullptr) {
  return str("<", tag, css_class ? str(" class=\"", css_class, "\"") : "", ">", escape_html(text), "</", tag, ">");
}

std::string note_of(const std::string& note) {
  return note.empty() ? "" : element("p", note, "note");
}

// A card with its title; long contents begin folded.
std::string card(const std::string& title, const std::string& body, bool folded, const std::string& summary = {}) {
  std::string out = "<section class=\"card\">";
  if (!title.empty()) out += element("h2", title);
  if (folded)
    out += "<details><summary>" + escape_html(summary) + "</summary>" + body + "</details>";
  else
    out += body;
  return out + "</section>\n";
}

const char* tone_class(Tone tone) {
  switch (tone) {
    case Tone::kNeutral:
      return "tile";
    case Tone::kGood:
      return "tile good";
    case Tone::kWarning:
      return "tile warning";
    case Tone::kBad:
      return "tile bad";
  }
  return "tile";
}

std::string render_highlights(const std::vector<Highlight>& highlights) {
  if (highlights.empty()) return {};
  std::string out = "<section class=\"tiles\">";
  for (const Highlight& h : highlights)
    out += str("<div class=\"", tone_class(h.tone), "\">", element("div", h.label, "label"),
               element("div", h.value, "value"), h.note.empty() ? "" : element("div", h.note, "hint"), "</div>");
  return out + "</section>\n";
}

std::string render_facts(const std::vector<Fact>& facts) {
  if (facts.empty()) return {};
  std::string out = "<dl class=\"facts\">";
  for (const Fact& fact : facts) out += "<div>" + element("dt", fact.key) + element("dd", fact.value) + "</div>";
  return card("Facts", out + "</dl>", false);
}

std::string render_table(const Table& table) {
  std::vector<bool> right;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    bool any = false, all = true;
    for (const auto& row : table.rows)
      if (c < row.size() && !row[c].empty()) {
        any = true;
        all = all && looks_numeric(row[c]);
      }
    right.push_back(any && all);
  }
  std::string body = "<div class=\"scroll\"><table><thead><tr>";
  for (size_t c = 0; c < table.columns.size(); ++c) body += element("th", table.columns[c], right[c] ? "n" : nullptr);
  body += "</tr></thead><tbody>";
  for (const auto& row : table.rows) {
    body += "<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c)
      body += element("td", c < row.size() ? row[c] : "", right[c] ? "n" : nullptr);
    body += "</tr>";
  }
  body += "</tbody></table></div>" + note_of(table.note);
  return card(table.title, body, table.rows.size() > kFoldRows, str(table.rows.size(), " rows"));
}

std::string legend(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::string out = "<div class=\"legend\">";
  for (size_t i = 0; i < names.size(); ++i)
    out += str("<span style=\"--c:var(--s", i % kColors + 1, ")\">", escape_html(names[i]), "</span>");
  return out + "</div>";
}

std::string render_curve(const Curve& curve) {
  std::vector<std::string> names;
  for (const Series& series : curve.series) names.push_back(series.name);
  return "<figure class=\"card\">" + element("h2", curve.title) + legend(names) + svg_line_chart(curve) + "</figure>\n";
}

std::string render_bars(const BarChart& chart) {
  double low = 0, high = 0;
  for (const Bar& bar : chart.bars) {
    for (double v : {bar.from, bar.to}) {
      if (!std::isfinite(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  if (low == high) high = low + 1;
  const auto percent = [&](double v) { return fixed((std::clamp(v, low, high) - low) / (high - low) * 100, 2); };
  std::string body = legend(chart.groups) + "<div class=\"bars\">";
  for (const Bar& bar : chart.bars) {
    const bool finite = std::isfinite(bar.from) && std::isfinite(bar.to);
    const double from = finite ? std::min(bar.from, bar.to) : low, to = finite ? std::max(bar.from, bar.to) : low;
    std::string text = bar.text;
    if (text.empty()) {
      text = (bar.from != 0 ? significant(bar.from, 4) + " to " : "") + significant(bar.to, 4);
      if (!chart.unit.empty()) text += " " + chart.unit;
    }
    body +=
        str("<div class=\"bar\"><span class=\"name\" title=\"", escape_html(bar.label), "\">", escape_html(bar.label),
            "</span><span class=\"track\"><i style=\"--c:var(--s", std::max(bar.group, 0) % kColors + 1,
            ");left:", percent(from), "%;width:", fixed((to - from) / (high - low) * 100, 2), "%\"></i></span>",
            element("span", text, "amount"), "</div>");
  }
  body += "</div>" + note_of(chart.note);
  return card(chart.title, body, chart.bars.size() > kFoldRows, str(chart.bars.size(), " bars"));
}

// A row of cells for each label; the diagonal has a color of its own, and a cell is the darker the larger its share of
// its row.
std::string render_matrix(const Matrix& matrix) {
  std::string body = str("<div class=\"scroll\"><table class=\"matrix\"><thead><tr><th>", escape_html(matrix.row_title),
                         " \\ ", escape_html(matrix.column_title), "</th>");
  for (const std::string& label : matrix.labels) body += element("th", label, "n");
  body += "</tr></thead><tbody>";
  for (size_t r = 0; r < matrix.counts.size(); ++r) {
    int64_t sum = 0;
    for (const int64_t count : matrix.counts[r]) sum += count;
    body += "<tr>" + element("th", r < matrix.labels.size() ? matrix.labels[r] : "");
    for (size_t c = 0; c < matrix.counts[r].size(); ++c) {
      const int64_t count = matrix.counts[r][c];
      const double share = sum > 0 ? static_cast<double>(count) / static_cast<double>(sum) : 0;
      body += str("<td class=\"n\" style=\"--c:var(--s", r == c ? 1 : 2, ");--share:", fixed(100 * std::sqrt(share), 0),
                  "%\">", count == 0 ? "" : std::to_string(count), "</td>");
    }
    body += "</tr>";
  }
  return card(matrix.title, body + "</tbody></table></div>" + note_of(matrix.note), false);
}

std::string strip_svg(const Strip& strip) {
  constexpr double kWidth = 320, kHeight = 26;
  double highest = 0;
  for (const double h : strip.heights) highest = std::max(highest, std::log1p(std::max(h, 0.0)));
  std::string path = str("M0 ", fixed(kHeight, 0));
  const double step = kWidth / static_cast<double>(std::max<size_t>(strip.heights.size(), 1));
  for (size_t i = 0; i < strip.heights.size(); ++i) {
    const double y = highest > 0 ? kHeight * (1 - std::log1p(std::max(strip.heights[i], 0.0)) / highest) : kHeight;
    path += str("L", fixed(step * static_cast<double>(i), 1), " ", fixed(y, 1), "L",
                fixed(step * static_cast<double>(i + 1), 1), " ", fixed(y, 1));
  }
  path += str("L", fixed(kWidth, 0), " ", fixed(kHeight, 0), "Z");
  const double cut = strip.end > 0 ? std::clamp(strip.cut / strip.end, 0.0, 1.0) * kWidth : kWidth;
  return str("<svg viewBox=\"0 0 ", fixed(kWidth, 0), " ", fixed(kHeight, 0),
             "\" preserveAspectRatio=\"none\"><path d=\"", path, "\" fill=\"var(--s1)\" opacity=\"0.55\"/><line x1=\"",
             fixed(cut, 1), "\" x2=\"", fixed(cut, 1), "\" y1=\"0\" y2=\"", fixed(kHeight, 0),
             "\" stroke=\"var(--s2)\" stroke-width=\"2\"/></svg>");
}

std::string render_strips(const StripChart& chart) {
  std::string body = "<div class=\"bars\">";
  for (const Strip& strip : chart.strips)
    body += str("<div class=\"bar\"><span class=\"name\" title=\"", escape_html(strip.label), "\">",
                escape_html(strip.label), "</span><span class=\"strip\">", strip_svg(strip), "</span>",
                element("span", strip.text, "amount"), "</div>");
  return card(chart.title, body + "</div>" + note_of(chart.note), chart.strips.size() > kFoldRows,
              str(chart.strips.size(), " tensors"));
}

std::string base64(const std::string& bytes) {
  static const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string render_picture(const Picture& picture) {
  return "<figure class=\"card\">" + element("h2", picture.title) + "<img alt=\"" + escape_html(picture.title) +
         "\" src=\"data:" + escape_html(picture.media_type) + ";base64," + base64(picture.bytes) + "\"></figure>\n";
}

}  // namespace

std::string render_html(const Report& report) {
  std::string out = str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">",
                        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">",
                        element("title", report.title), "<style>", kHtmlStyle, "</style></head><body><main>\n");
  out += "<header>" + element("h1", report.title);
  if (!report.subtitle.empty()) out += element("p", report.subtitle, "subtitle");
  std::string origin = report.created;
  if (!report.cpu.empty()) origin += (origin.empty() ? "" : " · ") + report.cpu;
  if (!origin.empty()) out += element("p", origin, "origin");
  out += "</header>\n" + render_highlights(report.highlights);
  if (!report.curves.empty()) {
    out += "<div class=\"grid\">";
    for (const Curve& curve : report.curves) out += render_curve(curve);
    out += "</div>\n";
  }
  for (const Table& table : report.tables)
    if (table.rows.size() <= kFoldRows) out += render_table(table);
  for (const BarChart& chart : report.bars) out += render_bars(chart);
  for (const Matrix& matrix : report.matrices) out += render_matrix(matrix);
  for (const StripChart& chart : report.strips) out += render_strips(chart);
  for (const Table& table : report.tables)  // long ones after what can be seen at a glance
    if (table.rows.size() > kFoldRows) out += render_table(table);
  if (!report.pictures.empty()) {
    out += "<div class=\"grid\">";
    for (const Picture& picture : report.pictures) out += render_picture(picture);
    out += "</div>\n";
  }
  out += render_facts(report.facts);
  if (!report.notes.empty()) {
    std::string list = "<ul>";
    for (const std::string& note : report.notes) list += element("li", note);
    out += card("Notes", list + "</ul>", false);
  }
  return out + "</main></body></html>\n";
}

void write_report(const std::filesystem::path& path, const Report& report) {
  write_file_atomically(path, render_html(report));
}

std::string current_time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char buffer[32];
  return {buffer, std::strftime(buffer, sizeof(buffer), "%Y-%m-%d %H:%M", &local)};
}

}  // namespace octet::report
