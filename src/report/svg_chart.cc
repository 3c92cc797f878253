#include "report/svg_chart.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "report/format.h"

namespace octet::report {
namespace {

constexpr double kWidth = 560, kHeight = 300, kLeft = 58, kRight = 14, kTop = 12, kBottom = 42;
constexpr int kSeriesColors = 6;
// Beyond this a page grows without anybody seeing a difference on 500 pixels.
constexpr size_t kMaxPoints = 1000;

struct Axis {
  double low, high;
  bool log;
  std::vector<double> ticks;
  double place(double value) const {
    if (log) return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
    return (value - low) / (high - low);
  }
};

bool drawable(double x, double y, bool log_y) {
  return std::isfinite(x) && std::isfinite(y) && (!log_y || y > 0);
}

Axis make_axis(double low, double high, bool log) {
  if (!(low <= high)) low = 0, high = 1;  // no points
  if (log) {
    const double first = std::floor(std::log10(low)), last = std::max(first + 1, std::ceil(std::log10(high)));
    Axis axis{std::pow(10, first), std::pow(10, last), true, {}};
    for (double e = first; e <= last; e += std::max(1.0, std::floor((last - first) / 6)))
      axis.ticks.push_back(std::pow(10, e));
    return axis;
  }
  if (low == high) {
    const double margin = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
  Axis axis{low, high, false, nice_ticks(low, high)};
  axis.low = std::min(low, axis.ticks.front());
  axis.high = std::max(high, axis.ticks.back());
  return axis;
}

bool is_whole(double v) {
  return std::abs(v - std::round(v)) < 1e-9 * std::max(1.0, std::abs(v));
}

std::string number(double v) {
  return fixed(v, 1);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
  return str("<text x=\"", number(x), "\" y=\"", number(y), "\" text-anchor=\"", anchor, "\"", more, ">",
             escape_html(text), "</text>");
}

}  // namespace

std::vector<double> nice_ticks(double low, double high) {
  OCTET_CHECK(std::isfinite(low) && std::isfinite(high) && low < high, low, " ", high);
  const double rough = high / 5 - low / 5, power = std::pow(10, std::floor(std::log10(rough)));
  const double ratio = rough / power;
  const double step = power * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last && ticks.size() < 12; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string escape_html(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string svg_line_chart(const Curve& curve) {
  bool whole = true;  // epochs have no fractions
  double x_low = HUGE_VAL, x_high = -HUGE_VAL, y_low = HUGE_VAL, y_high = -HUGE_VAL;
  for (const Series& series : curve.series) {
    OCTET_CHECK(series.x.size() == series.y.size(), series.name);
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!drawable(series.x[i], series.y[i], curve.log_y)) continue;
      whole = whole && is_whole(series.x[i]);
      x_low = std::min(x_low, series.x[i]);
      x_high = std::max(x_high, series.x[i]);
      y_low = std::min(y_low, series.y[i]);
      y_high = std::max(y_high, series.y[i]);
    }
  }
  Axis xs = make_axis(x_low, x_high, false);
  const Axis ys = make_axis(y_low, y_high, curve.log_y);
  if (whole) std::erase_if(xs.ticks, [](double tick) { return !is_whole(tick); });
  const auto px = [&](double x) { return kLeft + xs.place(x) * (kWidth - kLeft - kRight); };
  const auto py = [&](double y) { return kHeight - kBottom - ys.place(y) * (kHeight - kTop - kBottom); };

  std::string out = str("<svg class=\"chart\" viewBox=\"0 0 ", kWidth, " ", kHeight, "\" role=\"img\" aria-label=\"",
                        escape_html(curve.title), "\">");
  for (double tick : ys.ticks) {
    const std::string y = number(py(tick));
    out += str("<line class=\"grid\" x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"", y, "\" y2=\"", y, "\"/>");
    out += text_at(kLeft - 7, py(tick) + 4, "end", significant(tick, 5));
  }
  for (double tick : xs.ticks) out += text_at(px(tick), kHeight - kBottom + 18, "middle", significant(tick, 6));
  out += text_at((kLeft + kWidth - kRight) / 2, kHeight - 6, "middle", curve.x_label);
  out += text_at(-(kTop + kHeight - kBottom) / 2, 13, "middle", curve.y_label, " transform=\"rotate(-90)\"");

  for (size_t s = 0; s < curve.series.size(); ++s) {
    const Series& series = curve.series[s];
    const size_t color = s % kSeriesColors + 1, count = series.x.size(), stride = count / kMaxPoints + 1;
    std::string path, dots;
    bool pen_down = false;
    for (size_t i = 0; i < count; ++i) {
      // The last point stays, whatever the stride: it is the one that people read.
      if (i % stride != 0 && i + 1 != count) continue;
      const double x = series.x[i], y = series.y[i];
      if (!drawable(x, y, curve.log_y)) {
        pen_down = false;
        continue;
      }
      path += str(pen_down ? "L" : "M", number(px(x)), " ", number(py(y)));
      pen_down = true;
      if (count <= 60)
        dots += str("<circle cx=\"", number(px(x)), "\" cy=\"", number(py(y)), "\" r=\"2.6\"><title>",
                    escape_html(series.name), ": ", significant(y, 6), " at ", significant(x, 6), "</title></circle>");
    }
    out += str("<g class=\"series\" style=\"--c:var(--s", color, ")\"><path d=\"", path, "\"><title>",
               escape_html(series.name), "</title></path>", dots, "</g>");
  }
  return out + "</svg>";
}

}  // namespace octet::report
