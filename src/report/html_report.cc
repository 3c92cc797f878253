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
  for (const Table& table : report.tables)
    if (table.rows.size() <= kFoldRows) out += render_table(table);
  if (!report.curves.empty()) {
    out += "<div class=\"grid\">";
    for (const Curve& curve : report.curves) out += render_curve(curve);
    out += "</div>\n";
  }
  for (const BarChart& chart : report.bars) out += render_bars(chart);
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
