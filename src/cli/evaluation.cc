#include "cli/evaluation.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/evaluation_record.h"
#include "app/experiment_data.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "report/progress.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

// "top-1 91.20 %  top-5 99.80 %  loss 0.2512"
std::string metrics_text(const std::vector<tasks::MetricInfo>& infos, const tasks::Metrics& metrics) {
  std::string out;
  for (const tasks::MetricInfo& info : infos) {
    char number[64];
    std::snprintf(number, sizeof number, info.unit.empty() ? "%.4f" : "%.2f", metrics.at(info.name));
    out += str(out.empty() ? "" : "  ", info.title, " ", number, info.unit.empty() ? "" : " ", info.unit);
  }
  return out;
}

// Long tables are for the report alone.
void print(const report::Table& table) {
  constexpr size_t kMostRows = 40;
  if (table.rows.empty() || table.rows.size() > kMostRows) return;
  report::TextTable text(table.columns);
  for (const std::vector<std::string>& row : table.rows) {
    std::vector<std::string> cells;
    for (const std::string& cell : row) cells.push_back(printable_line(cell));
    text.add_row(cells);
  }
  std::cout << text.text() << '\n';
}

}  // namespace

void evaluate(spec::ExperimentSpec& spec, app::Model& model, const std::string& file, int64_t batch_size,
              const std::string& json) {
  const tasks::Task& task = *spec.task;
  if (const int64_t classes = task.classes(model.signature()); classes >= 0 && classes != spec.model.num_classes)
    fail_usage(file, ": has ", classes, " classes, the spec says model.num_classes: ", spec.model.num_classes);
  app::DataStream images =
      app::open_evaluation_data(spec, model.batch_size() > 0 ? model.batch_size() : batch_size, model.class_names());
  if (!images.dataset->labeled()) fail_usage("the images to evaluate have no labels; octet infer needs none");
  spec.task->name_classes(images.dataset->class_names());
  const std::unique_ptr<tasks::Evaluator> evaluator = task.evaluator();
  report::Progress progress({.label = "evaluate", .total = images.loader->images_per_epoch()});
  const auto start = std::chrono::steady_clock::now();
  const int64_t count = tasks::run_all(
      model, *images.loader,
      [&](const tasks::Outputs& outputs, const data::Batch& batch) { evaluator->add(outputs, batch); },
      [&](int64_t done) { progress.update(done); });
  progress.finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const auto& [index, entry] : images.loader->corrupt().entries)
    log_warning("skipped the damaged image ", entry.name, ": ", entry.reason);
  const tasks::Metrics metrics = evaluator->result();
  const std::vector<tasks::MetricInfo> infos = task.metrics();
  char speed[100];
  std::snprintf(speed, sizeof speed, "  on %lld images, %.0f images/s", static_cast<long long>(count),
                static_cast<double>(count) / seconds);
  nlohmann::ordered_json j = {
      {"model", file},   {"ran_as", model.description()}, {"task", spec.task.name()},
      {"images", count}, {"metric", infos.at(0).name},    {"metric_title", infos.at(0).title + " " + infos.at(0).unit}};
  for (const tasks::MetricInfo& info : infos) j[info.name] = metrics.at(info.name);
  j["corrupt_images"] = images.loader->corrupt().count();
  j["seconds"] = seconds;
  j.update(app::to_json(evaluator->details(), *images.dataset));
  if (json != "-") {
    print(app::class_table(j));
    print(app::figure_table(j));
    std::cout << printable_line(str(file, " (", model.description(), "): ", metrics_text(infos, metrics), speed))
              << '\n';
  }
  if (!json.empty()) write_json_output(json, std::move(j));
}

}  // namespace octet::cli
