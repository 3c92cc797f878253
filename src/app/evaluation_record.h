// What `octet evaluate` learned of a model, as the JSON that it writes and the tables that people read.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "report/html_report.h"
#include "tasks/details.h"

namespace octet::app {

// figures [{name, title, unit, value}], class_columns [{name, title, unit}], classes [{class, NAME: value ...}], curves
// [{name, title, x_label, y_label, lines [{class, x, y}]}], of classifiers confusion [[images]], and worst [{image,
// name, text, objects [{class, outcome, score, box}]}]; null for what is not known. Boxes are in pixels of the image.
nlohmann::ordered_json to_json(const tasks::Details& details, const data::Dataset& images);

// Of a result that holds the above; without rows where it does not.
report::Table class_table(const nlohmann::ordered_json& evaluation);
report::Table figure_table(const nlohmann::ordered_json& evaluation);
// Of classifiers: the whole matrix where the classes are few, and the pairs that are confused most often (none: there
// is no matrix).
std::optional<report::Matrix> confusion_of(const nlohmann::ordered_json& evaluation);
report::Table confusion_table(const nlohmann::ordered_json& evaluation);
// One chart for each set of curves, of at most six classes: those that are worst by the first column.
std::vector<report::Curve> curves_of(const nlohmann::ordered_json& evaluation);

}  // namespace octet::app
