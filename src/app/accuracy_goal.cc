#include "app/accuracy_goal.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "report/text_table.h"

namespace octet::app {
namespace {

std::string number(double value, const char* format = "%.2f") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string search_text(const AccuracySearch& search) {
  const auto mebibytes = [](int64_t bytes) { return number(static_cast<double>(bytes) / (1 << 20)); };
  report::TextTable table({"step", "score", "against float", "ms an image", "MiB", ""});
  table.add_row(
      {"float", number(search.float_score), "", number(search.float_ms, "%.3f"), mebibytes(search.float_bytes), ""});
  for (const AccuracyStep& step : search.steps)
    table.add_row({step.what, number(step.score), number(step.score - search.float_score, "%+.2f"),
                   number(step.ms, "%.3f"), mebibytes(step.bytes), step.kept ? "" : "not kept"});
  return table.text();
}

nlohmann::ordered_json search_json(const AccuracySearch& search) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array(), layers = nlohmann::ordered_json::array();
  for (const AccuracyStep& step : search.steps)
    steps.push_back(
        {{"what", step.what}, {"score", step.score}, {"ms", step.ms}, {"bytes", step.bytes}, {"kept", step.kept}});
  for (const quant::NodeSelector& selector : search.options.placement.exclude) layers.push_back(selector.name);
  return {{"float", search.float_score},
          {"float_ms", search.float_ms},
          {"float_bytes", search.float_bytes},
          {"score", search.score},
          {"ms", search.ms},
          {"bytes", search.bytes},
          {"holds", search.holds},
          {"steps", steps},
          {"float_layers", layers}};
}

}  // namespace octet::app
