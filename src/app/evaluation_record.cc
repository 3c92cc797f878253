#include "app/evaluation_record.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

namespace octet::app {
namespace {

using nlohmann::ordered_json;

constexpr size_t kLines = 6;               // as many colors as a chart has
constexpr size_t kConfusionClasses = 256;  // more would make the JSON megabytes
constexpr size_t kMatrixClasses = 24, kConfusions = 12;

ordered_json to_json(const tasks::MetricInfo& info) {
  return {{"name", info.name}, {"title", info.title}, {"unit", info.unit}};
}

ordered_json number_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

const char* outcome_name(tasks::Outcome outcome) {
  switch (outcome) {
    case tasks::Outcome::kRight:
      return "right";
    case tasks::Outcome::kMissed:
      return "missed";
    case tasks::Outcome::kWrong:
      return "wrong";
  }
  return "";
}

std::string cell(const ordered_json& value, const std::string& unit) {
  if (!value.is_number()) return "-";
  char text[64];
  const double number = value;
  std::snprintf(text, sizeof text, number == std::floor(number) && unit.empty() ? "%.0f" : "%.2f", number);
  return text;
}

std::string heading(const ordered_json& info) {
  const std::string unit = info.at("unit");
  return info.at("title").get<std::string>() + (unit.empty() ? "" : " " + unit);
}

// The classes of the lowest values in the first column.
std::set<std::string> worst_classes(const ordered_json& evaluation) {
  std::vector<std::pair<double, std::string>> classes;
  const std::string first = evaluation.at("class_columns").at(0).at("name");
  for (const ordered_json& row : evaluation.at("classes"))
    if (row.at(first).is_number()) classes.emplace_back(row.at(first), row.at("class"));
  std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::set<std::string> out;
  for (size_t i = 0; i < std::min(classes.size(), kLines); ++i) out.insert(classes[i].second);
  return out;
}

}  // namespace

ordered_json to_json(const tasks::Details& details, const data::Dataset& images) {
  const auto class_name = [&](int label) {
    const auto at = static_cast<size_t>(label);
    return at < images.class_names().size() ? images.class_names()[at] : std::to_string(label);
  };
  ordered_json j = {{"figures", ordered_json::array()},
                    {"class_columns", ordered_json::array()},
                    {"classes", ordered_json::array()},
                    {"curves", ordered_json::array()},
                    {"worst", ordered_json::array()}};
  for (const tasks::Figure& figure : details.figures) {
    j["figures"].push_back(to_json(figure.info));
    j["figures"].back()["value"] = number_or_null(figure.value);
  }
  for (const tasks::MetricInfo& column : details.columns) j["class_columns"].push_back(to_json(column));
  for (size_t label = 0; label < details.classes.size(); ++label) {
    ordered_json row = {{"class", class_name(static_cast<int>(label))}};
    for (size_t i = 0; i < details.columns.size(); ++i)
      row[details.columns[i].name] = number_or_null(details.classes[label].at(i));
    j["classes"].push_back(row);
  }
  if (const size_t n = details.classes.size(); n <= kConfusionClasses && details.confusion.size() == n * n && n > 0) {
    j["confusion"] = ordered_json::array();
    for (size_t label = 0; label < n; ++label)
      j["confusion"].push_back(
          std::vector<int64_t>(details.confusion.begin() + static_cast<std::ptrdiff_t>(label * n),
                               details.confusion.begin() + static_cast<std::ptrdiff_t>((label + 1) * n)));
  }
  for (const tasks::CurveSet& set : details.curves) {
    ordered_json lines = ordered_json::array();
    for (const tasks::CurveLine& line : set.lines)
      lines.push_back({{"class", class_name(line.label)}, {"x", line.x}, {"y", line.y}});
    j["curves"].push_back({{"name", set.name},
                           {"title", set.title},
                           {"x_label", set.x_label},
                           {"y_label", set.y_label},
                           {"lines", lines}});
  }
  for (const tasks::ImageRemark& remark : details.worst) {
    ordered_json objects = ordered_json::array();
    for (const tasks::Mark& mark : remark.marks) {
      const vision::Box& b = mark.object.box;
      objects.push_back({{"class", class_name(mark.object.label)},
                         {"outcome", outcome_name(mark.outcome)},
                         {"score", mark.object.score},
                         {"box", {b.x0, b.y0, b.x1, b.y1}}});
    }
    j["worst"].push_back(
        {{"image", remark.image}, {"name", images.name(remark.image)}, {"text", remark.text}, {"objects", objects}});
  }
  return j;
}

report::Table class_table(const ordered_json& evaluation) {
  report::Table table{"Classes", {"class"}, {}, ""};
  if (!evaluation.contains("class_columns")) return table;
  for (const ordered_json& column : evaluation["class_columns"]) table.columns.push_back(heading(column));
  for (const ordered_json& row : evaluation.at("classes")) {
    std::vector<std::string> cells = {row.at("class")};
    for (const ordered_json& column : evaluation["class_columns"])
      cells.push_back(cell(row.at(column.at("name").get<std::string>()), column.at("unit")));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::optional<report::Matrix> confusion_of(const ordered_json& evaluation) {
  if (!evaluation.contains("confusion") || evaluation["confusion"].size() > kMatrixClasses) return std::nullopt;
  report::Matrix matrix{.title = "What was taken for what",
                        .row_title = "is",
                        .column_title = "taken for",
                        .note = "Images; rows are what they are, columns what the model said."};
  for (const ordered_json& row : evaluation.at("classes")) matrix.labels.push_back(row.at("class"));
  for (const ordered_json& row : evaluation["confusion"]) matrix.counts.push_back(row);
  return matrix;
}

report::Table confusion_table(const ordered_json& evaluation) {
  report::Table table{"Most frequent confusions", {"is", "taken for", "images", "share of the class %"}, {}, ""};
  if (!evaluation.contains("confusion")) return table;
  struct Pair {
    size_t label, predicted;
    int64_t images, of;
  };
  std::vector<Pair> pairs;
  for (size_t label = 0; label < evaluation["confusion"].size(); ++label) {
    const std::vector<int64_t> row = evaluation["confusion"][label];
    const int64_t of = std::accumulate(row.begin(), row.end(), int64_t{0});
    for (size_t predicted = 0; predicted < row.size(); ++predicted)
      if (predicted != label && row[predicted] > 0) pairs.push_back({label, predicted, row[predicted], of});
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.images > b.images; });
  const auto name = [&](size_t label) { return evaluation.at("classes").at(label).at("class").get<std::string>(); };
  for (size_t i = 0; i < std::min(pairs.size(), kConfusions); ++i)
    table.rows.push_back({name(pairs[i].label), name(pairs[i].predicted), std::to_string(pairs[i].images),
                          cell(100.0 * static_cast<double>(pairs[i].images) / static_cast<double>(pairs[i].of), "%")});
  return table;
}

report::Table figure_table(const ordered_json& evaluation) {
  report::Table table{"All figures", {"figure", "value"}, {}, ""};
  if (!evaluation.contains("figures")) return table;
  for (const ordered_json& figure : evaluation["figures"])
    table.rows.push_back({heading(figure), cell(figure.at("value"), figure.at("unit"))});
  return table;
}

std::vector<report::Curve> curves_of(const ordered_json& evaluation) {
  std::vector<report::Curve> out;
  if (!evaluation.contains("curves") || evaluation["curves"].empty()) return out;
  const std::set<std::string> shown = worst_classes(evaluation);
  for (const ordered_json& set : evaluation["curves"]) {
    report::Curve curve{
        .title = set.at("title"), .x_label = set.at("x_label"), .y_label = set.at("y_label"), .series = {}};
    for (const ordered_json& line : set.at("lines"))
      if (shown.count(line.at("class")) > 0)
        curve.series.push_back({.name = line.at("class"), .x = line.at("x"), .y = line.at("y")});
    if (!curve.series.empty()) out.push_back(std::move(curve));
  }
  return out;
}

}  // namespace octet::app
