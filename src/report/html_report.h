// report.html: one page that needs nothing else (no scripts, no fonts, no network), light or dark as the reader's
// system, readable on paper and on a telephone.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "report/svg_chart.h"

namespace octet::report {

enum class Tone { kNeutral, kGood, kWarning, kBad };

// One of the few numbers that stand at the top.
struct Highlight {
  std::string label, value, note;  // "INT8 top-1", "92.31 %", "0.04 points below float"
  Tone tone = Tone::kNeutral;
};

struct Fact {
  std::string key, value;
};

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // columns of numbers are set to the right; missing cells are empty
  std::string note;
};

// One horizontal bar from `from` to `to` (a latency begins at 0, a range anywhere).
struct Bar {
  std::string label;
  double from = 0, to = 0;
  std::string text;  // beside the bar; empty: the numbers and the unit
  int group = 0;     // index into BarChart::groups; decides the color
};

struct BarChart {
  std::string title, unit;
  std::vector<Bar> bars;
  std::vector<std::string> groups;  // names of the colors ("INT8", "FP32"); may be empty
  std::string note;
};

// Counts of pairs, as shades: a confusion matrix.
struct Matrix {
  std::string title, row_title, column_title;
  std::vector<std::string> labels;           // of rows and columns alike
  std::vector<std::vector<int64_t>> counts;  // [row][column]
  std::string note;
};

// How a tensor is distributed, with a line where it is cut.
struct Strip {
  std::string label;
  std::vector<double> heights;  // any unit, drawn as logarithms; neighbors of equal width from 0 to `end`
  double end = 0, cut = 0;
  std::string text;  // beside it
};
struct StripChart {
  std::string title;
  std::vector<Strip> strips;
  std::string note;
};

struct Picture {
  std::string title;
  std::string media_type;  // "image/png"
  std::string bytes;       // the file's
};

struct Report {
  std::string title, subtitle;
  std::string created;  // date and time, as text
  std::string cpu;
  std::vector<Highlight> highlights;
  std::vector<Fact> facts;
  std::vector<Table> tables;
  std::vector<Curve> curves;
  std::vector<BarChart> bars;
  std::vector<StripChart> strips;
  std::vector<Matrix> matrices;
  std::vector<Picture> pictures;
  std::vector<std::string> notes;
};

// All texts may hold any characters. Tables and bar charts of more than 24 rows are folded.
std::string render_html(const Report& report);

// Writes it atomically, over an older one. UserError when that fails.
void write_report(const std::filesystem::path& path, const Report& report);

// Local time as "2026-11-21 14:03".
std::string current_time_text();

}  // namespace octet::report
