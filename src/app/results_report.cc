#include "app/results_report.h"

#include <octet/octet.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "app/evaluation_record.h"
#include "app/network_file.h"
#include "app/training_record.h"
#include "app/weight_ranges.h"
#include "app/worst_images.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "report/format.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string mebibytes(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? "" : report::fixed(static_cast<double>(size) / (1 << 20), 2);
}

void add_highlights(const ResultsFolder& r, report::Report& out) {
  const ordered_json summary = r.summary();
  const std::string of_engine = "engine_" + r.metric(), of_control = "control_" + r.metric();
  if (summary.at(of_engine).is_number())
    out.highlights.push_back(
        {"INT8 engine, " + r.metric_title(), report::fixed(summary[of_engine], 2),
         summary.at(of_control).is_number()
             ? report::fixed(summary[of_engine].get<double>() - summary[of_control].get<double>(), 2) +
                   " points against the float control"
             : "",
         report::Tone::kNeutral});
  if (summary.at("engine_agreement").is_number())
    out.highlights.push_back({"same answer as the trained graph",
                              report::fixed(100 * summary["engine_agreement"].get<double>(), 2) + " %",
                              "of the test images", r.verified() ? report::Tone::kGood : report::Tone::kBad});
  if (summary.at("int8_ms").is_number() && summary.at("fp32_ms").is_number())
    out.highlights.push_back({"INT8 latency", report::fixed(summary["int8_ms"], 3) + " ms",
                              report::fixed(summary["fp32_ms"].get<double>() / summary["int8_ms"].get<double>(), 2) +
                                  " times faster than the FP32 engine",
                              report::Tone::kNeutral});
}

// How each stage was trained.
void add_curves(const ResultsFolder& r, report::Report& out) {
  for (const char* stage : {"float", "qat", "control"}) {
    report::Curve loss{.title = str(stage, ": training loss"), .x_label = "epoch"};
    report::Curve accuracy{.title = str(stage, ": validation, ", r.metric_title()), .x_label = "epoch"};
    report::Series losses{.name = "loss"}, metric{.name = r.metric_title()};
    for (const ordered_json& e : r.history(stage)) {
      losses.x.push_back(e.at("epoch"));
      losses.y.push_back(e.at("loss"));
      const std::string measured = "val_" + r.metric();
      if (!e.at("metrics").contains(measured)) continue;
      metric.x.push_back(e["epoch"]);
      metric.y.push_back(e["metrics"][measured]);
    }
    if (!losses.x.empty()) {
      loss.series.push_back(losses);
      out.curves.push_back(loss);
    }
    if (!metric.x.empty()) {
      accuracy.series.push_back(metric);
      out.curves.push_back(accuracy);
    }
  }
}

// The figure by which classes are compared, of each class at each stage: where accuracy was lost.
void add_classes_by_stage(const ResultsFolder& r, report::Report& out) {
  std::vector<report::Table> stages;
  report::Table table{"", {"class"}, {}, ""};
  for (const auto& [stage, result] : r.evaluations) {
    report::Table of_stage = class_table(result);
    if (of_stage.rows.empty()) continue;
    table.columns.push_back(stage->title);
    stages.push_back(std::move(of_stage));
  }
  if (stages.size() < 2) return;
  table.title = str(stages.front().columns.at(1), " of each class by stage");
  for (const std::vector<std::string>& row : stages.back().rows) {
    std::vector<std::string>& cells = table.rows.emplace_back(1, row.at(0));
    for (const report::Table& stage : stages) {
      const auto same = std::find_if(stage.rows.begin(), stage.rows.end(),
                                     [&](const std::vector<std::string>& other) { return other.at(0) == row.at(0); });
      cells.push_back(same == stage.rows.end() ? "" : same->at(1));
    }
  }
  out.tables.push_back(std::move(table));
}

// What lies behind the figures of the last stage.
void add_details(const ResultsFolder& r, const data::Dataset* images, report::Report& out) {
  add_classes_by_stage(r, out);
  if (r.evaluations.empty()) return;
  const auto& [stage, result] = r.evaluations.back();
  if (std::optional<report::Matrix> matrix = confusion_of(result)) {
    matrix->title += str(": ", stage->title);
    out.matrices.push_back(std::move(*matrix));
  }
  for (report::Table table : {class_table(result), confusion_table(result), figure_table(result)}) {
    if (table.rows.empty()) continue;
    table.title += str(": ", stage->title);
    out.tables.push_back(std::move(table));
  }
  for (report::Curve curve : curves_of(result)) {
    curve.title += str(": ", stage->title);
    out.curves.push_back(std::move(curve));
  }
  if (images != nullptr) out.pictures = worst_pictures(result, *images);
}

void add_layers(const ResultsFolder& r, report::Report& out) {
  if (r.bench.is_null()) return;
  report::BarChart chart{.title = "Latency of each layer", .unit = "us", .groups = {"INT8", "FP32"}};
  for (const ordered_json& l : r.bench.at("layers"))
    chart.bars.push_back({.label = l.at("name").get<std::string>() + "  " + l.at("op").get<std::string>(),
                          .to = l.at("us").get<double>(),
                          .group = l.at("precision") == "int8" ? 0 : 1});
  out.bars.push_back(chart);
  report::Table layers{
      "Layers of the engine", {"layer", "operation", "precision", "kernel", "us", "why not INT8"}, {}, ""};
  for (const ordered_json& l : r.bench["layers"])
    layers.rows.push_back(
        {l.at("name"), l.at("op"), l.at("precision"), l.at("kernel"), report::fixed(l.at("us"), 1), l.at("reason")});
  out.tables.push_back(layers);
}

// Where accuracy goes: the quantizers that cost most, and what may help.
void add_suspects(const ResultsFolder& r, report::Report& out) {
  if (r.diagnosis.is_null()) return;
  constexpr size_t kShown = 20;
  report::BarChart chart{.title = "What is left of the outputs where one tensor alone is quantized",
                         .unit = "dB",
                         .groups = {"activations", "weights"},
                         .note = "Signal to noise; the shortest bars are where accuracy goes. 6 dB are one bit."};
  report::Table suspects{
      "Suspects, the most harmful first",
      {"tensor", "outputs, it alone (dB)", "itself (dB)", "with all before (dB)", "clipped %", "what may help"},
      {},
      str("With all quantizers ", report::fixed(r.diagnosis.at("output_db"), 1), " dB of the outputs are left, on ",
          r.diagnosis.at("images").get<int64_t>(), " images.")};
  for (const ordered_json& q : r.diagnosis.at("quantizers")) {
    if (suspects.rows.size() == kShown) break;
    const ordered_json& alone = q.at("isolated_db").is_null() ? q.at("fisher_db") : q["isolated_db"];  // --quick
    chart.bars.push_back({.label = q.at("tensor"),
                          .to = std::max(0.0, alone.get<double>()),
                          .group = q.at("weights").get<bool>() ? 1 : 0});
    suspects.rows.push_back({q["tensor"], report::fixed(alone, 1), report::fixed(q.at("own_db"), 1),
                             report::fixed(q.at("cumulative_db"), 1),
                             report::fixed(100 * q.at("clipped").get<double>(), 3), q.at("advice")});
  }
  out.bars.push_back(chart);
  out.tables.push_back(suspects);
}

void add_ranges(const ResultsFolder& r, report::Report& out) {
  if (r.ranges.is_null()) return;
  report::BarChart chart{.title = "Range of each quantized activation",
                         .unit = "",
                         .note = "What the calibrator chose; values beyond are clipped."};
  report::StripChart strips{.title = "Distribution of each quantized activation",
                            .strips = {},
                            .note =
                                "Magnitudes from 0 to the largest that calibration saw, as logarithms of how many; the "
                                "line is where the calibrator cuts."};
  report::Table methods{
      "What each calibrator would choose (amax)", {"tensor", "largest value", "chosen", "clipped %"}, {}, ""};
  for (const ordered_json& m : r.ranges.at("tensors").at(0).at("methods")) methods.columns.push_back(m.at("method"));
  for (const ordered_json& t : r.ranges["tensors"]) {
    const double amax = t.at("amax"), low = t.at("min").get<double>() < 0 ? -amax : 0;
    chart.bars.push_back({.label = t.at("tensor"), .from = low, .to = amax});
    const double largest = std::max(std::abs(t["min"].get<double>()), std::abs(t["max"].get<double>()));
    if (t.contains("histogram"))
      strips.strips.push_back({.label = t["tensor"],
                               .heights = t["histogram"],
                               .end = largest,
                               .cut = amax,
                               .text = "cut at " + report::fixed(amax, 3)});
    std::vector<std::string> row = {t["tensor"], report::fixed(largest, 4), report::fixed(amax, 4),
                                    report::fixed(100 * t.at("clipped_fraction").get<double>(), 4)};
    for (const ordered_json& m : t.at("methods")) row.push_back(report::fixed(m.at("amax"), 4));
    methods.rows.push_back(row);
  }
  out.bars.push_back(chart);
  if (!strips.strips.empty()) out.strips.push_back(std::move(strips));
  out.tables.push_back(methods);
}

// Of the network as it was calibrated, where the folder has that.
void add_weights(const ResultsFolder& r, report::Report& out) {
  const fs::path file = r.path / "calibrated.onnx";
  if (!fs::exists(file)) return;
  const std::vector<WeightRange> ranges = weight_ranges(read_network(file.string()));
  if (ranges.empty()) return;
  report::BarChart chart{.title = "Range of each quantized weight", .unit = "", .note = "Of all channels."};
  report::Table table{"Quantized weights",
                      {"weights", "shape", "least", "largest", "scales", "SQNR dB", "clipped %"},
                      {},
                      "Each output channel has a scale of its own unless there is one number. 6 dB are one bit."};
  for (const WeightRange& w : ranges) {
    chart.bars.push_back({.label = w.tensor, .from = w.least, .to = w.largest});
    const std::string least = report::significant(w.least_scale, 3), largest = report::significant(w.largest_scale, 3);
    table.rows.push_back({w.tensor, ir::shape_string(w.shape), report::fixed(w.least, 4), report::fixed(w.largest, 4),
                          w.least_scale == w.largest_scale ? least : least + " to " + largest,
                          std::isfinite(w.sqnr_db) ? report::fixed(w.sqnr_db, 1) : "lossless",
                          report::fixed(100 * w.clipped, 3)});
  }
  out.bars.push_back(chart);
  out.tables.push_back(table);
}

// On how many images what stands above was found, and by what.
void add_origin(const ResultsFolder& r, report::Report& out) {
  out.facts.push_back({"Octet", octet_version()});
  const auto say = [&](const char* what, const ordered_json& json) {
    if (json.is_object() && json.contains("images")) out.facts.push_back({what, str(json.at("images").get<int64_t>())});
  };
  if (!r.evaluations.empty()) say("images measured", r.evaluations.back().result);
  say("images verified", r.verification);
  say("images of the diagnosis", r.diagnosis);
  if (r.bench.is_object() && r.bench.contains("runs"))
    out.facts.push_back({"runs timed", str(r.bench.at("runs").get<int64_t>())});
}

// What was typed, so that it can be typed again.
void add_commands(const ResultsFolder& r, report::Report& out) {
  report::Table table{"How it was made", {"what", "command"}, {}, ""};
  const auto say = [&](const std::string& what, const std::string& command) {
    if (!command.empty()) table.rows.push_back({what, command});
  };
  const auto of = [](const ordered_json& json) { return json.is_object() ? json.value("command", "") : ""; };
  for (const char* stage : {"float", "qat", "control"})
    if (const auto record = read_training_record(r.path / stage)) {
      say(str("training, ", stage), record->command);
      if (record->images > 0) out.facts.push_back({str("images trained on, ", stage), str(record->images)});
    }
  say("calibration", of(r.ranges));
  say("diagnosis", of(r.diagnosis));
  for (const auto& [stage, result] : r.evaluations) say(str("measurement, ", stage->title), of(result));
  say("verification", of(r.verification));
  say("time", of(r.bench));
  if (!table.rows.empty()) out.tables.push_back(table);
}

void add_verification(const ResultsFolder& r, report::Report& out) {
  if (r.verification.is_null()) return;
  report::Table tensors{
      "Engine against trained graph, tensor by tensor",
      {"tensor", "codes compared", "different", "ties of one step", "wrong"},
      {},
      "Each tensor is computed by the graph from the engine's own codes before it. A tie is a value on "
      "the border between two codes, or within a quarter of a code of it behind an activation that is computed on "
      "lines."};
  for (const ordered_json& t : r.verification.at("tensors"))
    tensors.rows.push_back({t.at("tensor"), str(t.at("elements").get<int64_t>()), str(t.at("different").get<int64_t>()),
                            str(t.at("ties").get<int64_t>()), str(t.at("violations").get<int64_t>())});
  out.tables.push_back(tensors);
}

}  // namespace

report::Table stage_table(const ResultsFolder& r) {
  report::Table table{
      "Accuracy, size and speed", {"stage", r.metric_title(), "file MiB", "ms an image", "what"}, {}, ""};
  for (const auto& [stage, result] : r.evaluations) {
    const double ms = r.latency(stage->kind);
    table.rows.push_back({stage->title, report::fixed(result.at(r.metric()), 2), mebibytes(r.path / stage->model),
                          ms > 0 ? report::fixed(ms, 3) : "", stage->what});
  }
  if (r.latency("onnxruntime") > 0)
    table.rows.push_back({"ONNX Runtime FP32", "", mebibytes(r.path / "float/model.onnx"),
                          report::fixed(r.latency("onnxruntime"), 3), "the float model, same run, in turns"});
  return table;
}

report::Report results_report(const ResultsFolder& r, const spec::ExperimentSpec& spec, const data::Dataset* images) {
  report::Report out;
  out.title = "Octet: " + spec.model.arch;
  out.subtitle = "From float training to the INT8 engine";
  out.created = report::current_time_text();
  out.cpu = cpu_model_name();
  add_highlights(r, out);
  out.facts = {{"network", spec.model.arch},
               {"spec hash", spec::spec_hash(spec)},
               {"CPU", cpu_model_name()},
               {"best instruction set", isa_name(default_isa())},
               {"calibration", r.calibration_method()}};
  out.tables.push_back(stage_table(r));
  add_details(r, images, out);
  add_curves(r, out);
  add_layers(r, out);
  add_suspects(r, out);
  add_ranges(r, out);
  add_weights(r, out);
  add_verification(r, out);
  add_origin(r, out);
  add_commands(r, out);
  return out;
}

}  // namespace octet::app
