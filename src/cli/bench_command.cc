// octet bench: latency or throughput of engines and rivals measured in turns, and a table per layer.
#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/bench/busyness.h"
#include "app/bench/contender.h"
#include "app/bench/image_feed.h"
#include "app/bench/layers.h"
#include "app/bench/load.h"
#include "app/bench/windows.h"
#include "app/model_file.h"
#include "base/cpu_features.h"
#include "base/cpu_limits.h"
#include "base/cpu_wait.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/bench_rows.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "cli/model_flags.h"
#include "report/format.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::string kRivals[] = {"onnxruntime", "openvino"};

bool is_rival(const BenchRow& row) {
  return std::find(std::begin(kRivals), std::end(kRivals), row.kind) != std::end(kRivals);
}

struct BenchOptions {
  SpecFlags spec;
  ModelFlags input;
  std::string model, baseline, json, csv, trace, isa, mode = "latency";
  std::vector<std::string> rivals, onnx, images;
  std::vector<int64_t> threads;
  int64_t runs = 60, windows = 5, window_ms = 0, batch_size = 0;

  app::BenchMode bench_mode() const {
    return mode == "latency" ? app::BenchMode::kLatency : app::BenchMode::kThroughput;
  }
};

std::string engine_kind(const engine::Plan& plan) {
  for (const engine::Step& step : plan.steps)
    if (step.int8) return "octet_int8";
  return "octet_fp32";
}

BenchRow engine_row(const std::shared_ptr<const engine::PreparedPlan>& plan, const std::string& file, int threads,
                    app::BenchMode mode) {
  BenchRow row{.kind = engine_kind(plan->plan()), .file = file};
  row.name = str("Octet ", row.kind == "octet_int8" ? "INT8" : "FP32", " (", isa_name(plan->isa()), ")");
  if (mode == app::BenchMode::kLatency)
    row.contender = std::make_unique<app::EngineLatency>(plan, threads);
  else
    row.contender = std::make_unique<app::EngineThroughput>(plan, threads);
  return row;
}

// The same engine on real images, with all that happens between file and input in the time.
BenchRow images_row(const app::BenchModel& model, const spec::ExperimentSpec& spec, const BenchOptions& options,
                    int threads) {
  BenchRow row{.kind = engine_kind(model.plan()) + "_images", .file = options.model};
  int64_t images = 0;
  const auto make_feed = [&]() -> app::Feed {
    auto feed = std::make_shared<app::ImageFeed>(spec, options.images, model.plan());
    images = feed->images();
    return [feed](std::span<float> input) { feed->next(input); };
  };
  if (options.bench_mode() == app::BenchMode::kLatency)
    row.contender = std::make_unique<app::EngineLatency>(model.prepared, threads, make_feed());
  else
    row.contender = std::make_unique<app::EngineThroughput>(model.prepared, threads, make_feed);
  row.name = "the same with images";
  row.detail = str("reads, decodes and resizes ", images, images == 1 ? " image" : " images", " by turns");
  return row;
}

// The files that a rival runs: those that --onnx names for it (RIVAL=FILE) or for all, or the model itself.
std::vector<std::string> rival_files(const BenchOptions& options, const std::string& rival) {
  std::vector<std::string> files;
  for (const std::string& file : options.onnx) {
    const auto named = std::find_if(std::begin(kRivals), std::end(kRivals),
                                    [&](const std::string& name) { return file.starts_with(name + "="); });
    if (named == std::end(kRivals))
      files.push_back(file);
    else if (*named == rival)
      files.push_back(file.substr(rival.size() + 1));
  }
  if (options.onnx.empty() && options.model.ends_with(".onnx")) files.push_back(options.model);
  if (files.empty()) fail_usage("--compare ", rival, ": name the ONNX file that it runs with --onnx");
  return files;
}

void add_rivals(const BenchOptions& options, int threads, int64_t batch, Isa isa, std::vector<BenchRow>& rows) {
  for (const std::string& rival : options.rivals) {
    const app::RivalCap cap = app::rival_cap(rival, isa);
    if (cap.needed && !cap.possible) {
      log_info(rival, " is left out: nothing holds it to ", isa_name(isa));
      continue;
    }
    for (const std::string& file : rival_files(options, rival)) {
      auto contender = std::make_unique<app::RivalContender>(
          app::RivalProcess::Options{.peer = rival,
                                     .model = file,
                                     .threads = threads,
                                     .batch = static_cast<int>(batch),
                                     .throughput = options.bench_mode() == app::BenchMode::kThroughput,
                                     .environment = cap.environment});
      BenchRow row{.name = rival + " " + contender->process.version(), .kind = rival, .file = file};
      row.detail = contender->process.detail();
      if (!cap.environment.empty()) row.detail += ", " + cap.environment.front();
      row.contender = std::move(contender);
      rows.push_back(std::move(row));
    }
  }
}

// A rate needs some time to count in, a latency does not.
double least_window_ms(const BenchOptions& options) {
  constexpr double kThroughputWindow = 100;
  const auto asked = static_cast<double>(options.window_ms);
  return options.bench_mode() == app::BenchMode::kThroughput ? std::max(asked, kThroughputWindow) : asked;
}

void take_turn(BenchRow& row, const app::BenchWindow& window) {
  const auto waited = row.contender->waited();
  const auto start = std::chrono::steady_clock::now();
  row.times.windows.push_back(row.contender->turn(window));
  const std::chrono::duration<double, std::milli> turned = std::chrono::steady_clock::now() - start;
  const auto after = row.contender->waited();
  if (!after) return;
  row.turned += turned.count();
  row.waited += static_cast<double>(*after - waited.value_or(0)) * 1e-6;
}

void take_turns(const BenchOptions& options, const std::vector<BenchRow*>& rows) {
  const auto windows = static_cast<size_t>(std::min(options.windows, options.runs));
  for (size_t w = 0; w < windows; ++w) {
    const int64_t share = options.runs * static_cast<int64_t>(w + 1) / static_cast<int64_t>(windows) -
                          options.runs * static_cast<int64_t>(w) / static_cast<int64_t>(windows);
    const app::BenchWindow window{.runs = static_cast<int>(share), .milliseconds = least_window_ms(options)};
    // Another one starts each window, so that nobody always follows the same neighbor.
    for (size_t i = 0; i < rows.size(); ++i) {
      // The workers of the one before spin for a while after its last run.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      take_turn(*rows[(w + i) % rows.size()], window);
    }
  }
}

// For each number of threads; all take turns, so that these can be compared, too. `spec`: how images become the input,
// where they are asked for.
std::vector<Measurement> measure(const BenchOptions& options, const app::BenchModel& model,
                                 const app::BenchModel* baseline, const spec::ExperimentSpec* spec,
                                 const std::vector<int>& thread_counts, Isa isa) {
  const app::BenchMode mode = options.bench_mode();
  std::vector<Measurement> measurements;
  for (int threads : thread_counts) {
    Measurement& m = measurements.emplace_back(Measurement{.threads = threads});
    m.rows.push_back(engine_row(model.prepared, options.model, threads, mode));
    if (spec) m.rows.push_back(images_row(model, *spec, options, threads));
    if (baseline) m.rows.push_back(engine_row(baseline->prepared, options.baseline, threads, mode));
    add_rivals(options, threads, model.batch(), isa, m.rows);
  }
  std::vector<BenchRow*> all;
  for (Measurement& m : measurements)
    for (BenchRow& row : m.rows) all.push_back(&row);
  take_turns(options, all);
  for (Measurement& m : measurements)
    for (BenchRow& row : m.rows) {
      row.ratio = app::times_as_long(row.times, m.rows.front().times);
      if (is_rival(row) && (!m.fastest_rival || row.ratio.median < m.fastest_rival->ratio.median))
        m.fastest_rival = &row;
      row.contender.reset();  // rivals end, memory goes
    }
  return measurements;
}

app::Busyness busyness_of(std::optional<double> load_before, const std::vector<Measurement>& measurements) {
  double turned = 0, waited = 0;
  for (const Measurement& m : measurements)
    for (const BenchRow& row : m.rows) turned += row.turned, waited += row.waited;
  return {load_before, turned, waited};
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json model_json(const app::BenchModel& model) {
  return {{"compile_ms", or_null(model.compile_ms)},
          {"load_to_first_ms", or_null(model.load_to_first_ms)},
          {"rss_mb", model.rss_mb},
          {"rss_engine_mb", model.rss_engine_mb},
          {"weights_mb", model.weights_mb()},
          {"derived_mb", model.derived_mb()},
          {"arena_mb", model.arena_mb()}};
}

void print(const app::BenchModel& model) {
  if (model.load_to_first_ms)
    std::cout << "load to first result " << report::fixed(*model.load_to_first_ms, 1) << " ms";
  else
    std::cout << "compiled in " << report::fixed(model.compile_ms.value_or(0), 0) << " ms";
  std::cout << ", " << report::fixed(model.rss_engine_mb, 1) << " MiB more resident (weights "
            << report::fixed(model.weights_mb(), 1) << ", in kernels' order " << report::fixed(model.derived_mb(), 1)
            << ", arena " << report::fixed(model.arena_mb(), 1) << ")\n\n";
}

// A baseline that is an ONNX file gets the sizes that the model got.
std::vector<ir::InputShape> baseline_shapes(const BenchOptions& options) {
  return options.baseline.ends_with(".octet") ? std::vector<ir::InputShape>()
                                              : options.spec.input_shapes(options.baseline);
}

ExitCode run_bench(const BenchOptions& options) {
  const Isa isa = chosen_isa(options.isa);
  const app::BenchMode mode = options.bench_mode();
  std::vector<int> thread_counts;
  for (int64_t t : options.threads) thread_counts.push_back(t > 0 ? static_cast<int>(t) : available_cpus());
  if (thread_counts.empty()) thread_counts = {available_cpus()};
  for (const std::string& rival : options.rivals)
    for (const std::string& file : rival_files(options, rival)) require_file(file, "--onnx");
  const app::BenchModel model = app::load_bench_model(options.model, options.batch_size, thread_counts.back(), isa,
                                                      options.spec.input_shapes(options.model));
  std::optional<spec::ExperimentSpec> spec;
  if (!options.images.empty()) {
    app::ModelFacts facts{options.model, model.plan().metadata, app::signature_of(model.plan())};
    spec = experiment_to_feed(options.spec, options.input, facts);
  } else if (options.input.any() || options.spec.exif_orientation) {
    fail_usage("flags that say how images become the input go with --images FOLDER; without it the input is random");
  }
  std::unique_ptr<app::BenchModel> baseline;
  if (!options.baseline.empty())
    baseline = std::make_unique<app::BenchModel>(
        app::load_bench_model(options.baseline, model.batch(), thread_counts.back(), isa, baseline_shapes(options)));

  std::cout << cpu_model_name() << ", " << isa_name(isa) << ", batch " << model.batch() << ", " << options.mode << ", "
            << options.runs << " runs in " << std::min(options.windows, options.runs) << " windows\n";
  print(model);
  const auto load_before = load_average();
  const double exchange_before = engine::measure_line_exchange_ns();
  const std::vector<Measurement> measurements =
      measure(options, model, baseline.get(), spec ? &*spec : nullptr, thread_counts, isa);
  for (const Measurement& m : measurements) print(m, mode);
  const app::Busyness busyness = busyness_of(load_before, measurements);
  const bool too_busy = busyness.too_busy(available_cpus());
  if (too_busy) log_warning(busyness.text());
  const double exchange_after = engine::measure_line_exchange_ns();
  if (exchange_before > 0)
    std::cout << "two CPUs pass a cache line to and fro in " << report::fixed(exchange_before, 0) << " ns before and "
              << report::fixed(exchange_after, 0) << " ns after this\n";
  // The layers run alone, with the last number of threads.
  const int threads = thread_counts.back();
  app::EngineLatency engine(model.prepared, mode == app::BenchMode::kLatency ? threads : 1);
  // Before and after: two virtual CPUs may share a core for a while, and no peak is there then.
  const engine::MachinePeak before = engine::measure_peak(isa, engine.executor.threads());
  const app::LayerTimes times = app::time_layers(engine, std::max<int64_t>(options.runs, 10));
  const std::vector<app::LayerTime>& layers = times.layers;
  const engine::MachinePeak after = engine::measure_peak(isa, engine.executor.threads());
  const engine::MachinePeak& peak = after.int8_gmac_per_s > before.int8_gmac_per_s ? after : before;
  double milliseconds = 0;
  for (const app::LayerTime& l : layers) milliseconds += l.us * 1e-3;
  if (mode == app::BenchMode::kLatency) milliseconds = measurements.back().rows.front().times.median();
  const Json totals = app::totals_json(layers, peak, milliseconds);
  std::cout << "layers with " << threads_text(engine.executor.threads()) << "; peak "
            << report::fixed(peak.int8_gmac_per_s, 0) << " GMAC/s (" << peak.int8_instruction << "), FP32 "
            << report::fixed(peak.float_gmac_per_s, 0) << " (" << peak.float_instruction << "); whole network "
            << report::fixed(totals["gmacs"], 3) << " GMAC, " << report::fixed(totals["gmac_per_s"], 0) << " GMAC/s, "
            << report::fixed(totals["percent_of_peak"], 1) << " % of peak\n"
            << app::layer_table(layers, peak);
  if (engine.executor.threads() > 1)
    std::cout << "beside the layers, a run waits " << report::fixed(times.waiting_us, 1)
              << " us for threads to meet after each of them (median)\n";
  if (!options.trace.empty()) write_text_output(options.trace, app::chrome_trace(engine));
  if (!options.csv.empty()) write_text_output(options.csv, measurements_csv(measurements, mode));
  if (options.json.empty()) return ExitCode::kDone;
  Json json = {{"model", options.model},
               {"cpu", cpu_model_name()},
               {"isa", isa_name(isa)},
               {"mode", options.mode},
               {"batch", model.batch()},
               {"runs", options.runs},
               {"windows", std::min(options.windows, options.runs)},
               {"load_before", or_null(busyness.load_before())},
               {"waited_for_cpu_percent", or_null(busyness.waited_percent())},
               {"too_busy", too_busy}};
  json.update(model_json(model));
  json.update(measurement_json(measurements.back(), mode));
  json["measurements"] = Json::array();
  for (const Measurement& m : measurements) json["measurements"].push_back(measurement_json(m, mode));
  json["peak"] = {{"threads", engine.executor.threads()},
                  {"int8_gmac_per_s", peak.int8_gmac_per_s},
                  {"int8_instruction", peak.int8_instruction},
                  {"fp32_gmac_per_s", peak.float_gmac_per_s},
                  {"fp32_instruction", peak.float_instruction}};
  json["line_exchange_ns"] = {{"before", exchange_before}, {"after", exchange_after}};
  json["totals"] = totals;
  json["waiting_us"] = times.waiting_us;
  json["layers"] = app::layers_json(layers, peak);
  write_json_output(options.json, std::move(json));
  return ExitCode::kDone;
}

}  // namespace

Command bench_command() {
  return {
      .name = "bench",
      .summary = "Time an engine, layer by layer, beside others",
      .details =
          "Prints the least, median, 90th and 99th percentile and longest latency (or, with --mode throughput, the "
          "inferences per second of one context "
          "on each thread) on random images. --images times the engine a second time with pictures, which are read, "
          "decoded, "
          "resized and normalized within the time, as the model's file and flags say. --baseline adds a second engine "
          "(the FP32 one), --compare adds ONNX "
          "Runtime or OpenVINO on one or more ONNX files; all take turns in windows within the run, and how many "
          "times as long each takes is stated per window. It says when other processes keep the machine too busy for "
          "the times to mean anything. With --isa below the best of this machine OpenVINO is held "
          "to the same instruction set, and ONNX Runtime, which cannot be, is left out. The table per layer names "
          "precision, kernel, time, multiply-accumulates per second, percent of what this machine can do, bytes, and "
          "the reason where a layer is not INT8.",
      .examples = {"octet bench -m model.octet --baseline float.octet --compare onnxruntime --onnx float.onnx",
                   "octet bench model.qdq.onnx --compare onnxruntime,openvino --threads 1,2 --json bench.json",
                   "octet bench model.octet --threads 1 --images photos/ --csv bench.csv",
                   "octet bench model.octet --threads 2 --trace trace.json"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<BenchOptions>();
        add_model_flag(app, options->model, "Engine file, or ONNX file compiled for the occasion", Need::kOptional);
        app.add_option("MODEL", options->model, "The same, without -m");
        app.add_option("--baseline", options->baseline, "Second engine or ONNX file to time");
        limit_to(app.add_option("--compare", options->rivals, "One of them, or both with a comma")->delimiter(','),
                 schema::join(std::vector<std::string>(std::begin(kRivals), std::end(kRivals)), "|"));
        app.add_option("--onnx", options->onnx,
                       "ONNX files that the rivals run, each of them a contender; RIVAL=FILE: for that one alone, "
                       "OpenVINO's may "
                       "be its .xml; default: MODEL if that is one")
            ->delimiter(',');
        limit_to(app.add_option("--mode", options->mode,
                                "latency: one inference at a time on all threads; throughput: one on each thread"),
                 "latency|throughput")
            ->capture_default_str();
        add_number_flag(app, "--runs", options->runs, 1, 1000000, "Timed runs, over all windows")
            ->capture_default_str();
        add_number_flag(app, "--windows", options->windows, 1, 1000, "Turns that each contender takes")
            ->capture_default_str();
        add_number_flag(app, "--window_ms", options->window_ms, 0, 60000,
                        "A turn lasts at least this long, whatever --runs says (throughput: 100 or more)")
            ->capture_default_str();
        add_batch_size_flag(app, options->batch_size)
            ->description("Of ONNX files (default: what the file says, or 1); engine files have their own");
        app.add_option("--threads", options->threads,
                       "Numbers of threads to measure with, with commas (0: as many as CPUs)")
            ->delimiter(',')
            ->check(CLI::Range(int64_t{0}, int64_t{1024}));
        add_isa_flag(app, options->isa);
        app.add_option("--images", options->images,
                       "Time the engine also with these images, from file to result; files or folders")
            ->type_name("FOLDER");
        add_model_flags(app, options->input);
        add_exif_flag(app, options->spec);
        add_input_shape_flag(app, options->spec);
        add_json_flag(app, options->json);
        add_csv_flag(app, options->csv, "a line for each contender and number of threads");
        add_written_file_flag(app, "--trace", options->trace,
                              "Write one inference for chrome://tracing, a row for each thread");
        return [options] { return run_bench(*options); };
      }};
}

}  // namespace octet::cli
