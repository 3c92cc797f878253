#include "cli/bench_rows.h"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>

#include "base/error.h"
#include "report/csv.h"
#include "report/format.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

// How long the slow ones of a contender's runs took. A throughput has no single runs.
struct Tail {
  const char* key;  // of JSON and CSV
  const char* title;
  double share;
};
constexpr Tail kTails[] = {{"p90_ms", "p90 ms", 0.9}, {"p99_ms", "p99 ms", 0.99}, {"max_ms", "max ms", 1}};

double tail_of(const BenchRow& row, const Tail& tail, app::BenchMode mode) {
  return mode == app::BenchMode::kLatency ? row.times.quantile(tail.share) : std::numeric_limits<double>::quiet_NaN();
}

std::string ratio_text(const app::TimesAsLong& ratio) {
  return str(report::fixed(ratio.median, 2), " (", report::fixed(ratio.min, 2), "-", report::fixed(ratio.max, 2), ")");
}

Json ratio_json(const app::TimesAsLong& ratio) {
  return {{"median", ratio.median}, {"min", ratio.min}, {"max", ratio.max}, {"per_window", ratio.per_window}};
}

void add_times(Json& json, const BenchRow& row, app::BenchMode mode) {
  json["min_ms"] = row.times.min();
  json["median_ms"] = row.times.median();
  for (const Tail& tail : kTails) {
    const double value = tail_of(row, tail, mode);
    json[tail.key] = value == value ? Json(value) : Json(nullptr);
  }
}

Json results_json(const Measurement& m, app::BenchMode mode) {
  Json out = Json::array();
  for (const BenchRow& row : m.rows) {
    Json result = {{"name", row.name}, {"kind", row.kind}, {"file", row.file}, {"detail", row.detail}};
    add_times(result, row, mode);
    result["inferences_per_s"] = 1e3 / row.times.median();
    result["window_median_ms"] = row.times.window_medians();
    result["times_as_long"] = ratio_json(row.ratio);
    out.push_back(std::move(result));
  }
  return out;
}

}  // namespace

std::string threads_text(int threads) {
  return str(threads, threads == 1 ? " thread" : " threads");
}

void print(const Measurement& m, app::BenchMode mode) {
  const bool latency = mode == app::BenchMode::kLatency;
  std::cout << threads_text(m.threads) << (latency ? ":\n" : ", one inference on each:\n");
  std::vector<std::string> columns = {"engine", "file", "min ms", "median ms"};
  if (latency)
    for (const Tail& tail : kTails) columns.emplace_back(tail.title);
  for (const char* column : {"inferences/s", "times as long as Octet", "how it runs"}) columns.emplace_back(column);
  report::TextTable table(columns);
  for (const BenchRow& row : m.rows) {
    std::vector<std::string> cells = {row.name, std::filesystem::path(row.file).filename().string(),
                                      report::fixed(row.times.min(), 3), report::fixed(row.times.median(), 3)};
    if (latency)
      for (const Tail& tail : kTails) cells.push_back(report::fixed(tail_of(row, tail, mode), 3));
    for (const std::string& cell : {report::fixed(1e3 / row.times.median(), 1), ratio_text(row.ratio), row.detail})
      cells.push_back(cell);
    table.add_row(cells);
  }
  std::cout << table.text();
  if (m.fastest_rival)
    std::cout << "Octet is " << report::fixed(m.fastest_rival->ratio.median, 2) << " times as fast as "
              << m.fastest_rival->name << " (median of " << m.fastest_rival->ratio.per_window.size()
              << " interleaved windows, " << report::fixed(m.fastest_rival->ratio.min, 2) << " to "
              << report::fixed(m.fastest_rival->ratio.max, 2) << ")\n";
  std::cout << "\n";
}

Json measurement_json(const Measurement& m, app::BenchMode mode) {
  Json out = {{"threads", m.threads}};
  add_times(out, m.rows.front(), mode);
  out["fastest_rival"] = m.fastest_rival ? Json(m.fastest_rival->name) : Json(nullptr);
  out["ratio"] = m.fastest_rival ? ratio_json(m.fastest_rival->ratio) : Json(nullptr);
  out["results"] = results_json(m, mode);
  return out;
}

std::string measurements_csv(const std::vector<Measurement>& measurements, app::BenchMode mode) {
  using report::csv_number;
  std::vector<std::string> columns = {"threads", "name", "kind", "file", "min_ms", "median_ms"};
  for (const Tail& tail : kTails) columns.emplace_back(tail.key);
  for (const char* column : {"inferences_per_s", "times_as_long", "detail"}) columns.emplace_back(column);
  std::vector<std::vector<std::string>> rows;
  for (const Measurement& m : measurements)
    for (const BenchRow& row : m.rows) {
      std::vector<std::string> cells = {
          std::to_string(m.threads),     row.name, row.kind, row.file, csv_number(row.times.min()),
          csv_number(row.times.median())};
      for (const Tail& tail : kTails) cells.push_back(csv_number(tail_of(row, tail, mode)));
      for (const std::string& cell : {csv_number(1e3 / row.times.median()), csv_number(row.ratio.median), row.detail})
        cells.push_back(cell);
      rows.push_back(std::move(cells));
    }
  return report::csv(columns, rows);
}

}  // namespace octet::cli
