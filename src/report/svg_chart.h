// Line charts as inline SVG for the HTML report.
#pragma once
#include <string>
#include <vector>

namespace octet::report {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of equal length; points that are not finite leave a gap
};

struct Curve {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool log_y = false;  // values <= 0 leave a gap
};

// An <svg> element without colors of its own: strokes use the CSS variables --s1 ... --s6, --grid and --ink.
std::string svg_line_chart(const Curve& curve);

// 3 to 8 round numbers (1, 2 or 5 times a power of ten) that cover [low, high].
std::vector<double> nice_ticks(double low, double high);

// Text for HTML and SVG, attributes included.
std::string escape_html(const std::string& text);

}  // namespace octet::report
