// octet bench: latency of engines, each other and rivals measured in turns, and a table per layer.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/cpu_features.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/network_file.h"
#include "cli/rival_process.h"
#include "engine/engine_file.h"
#include "engine/executor.h"
#include "lower/lower.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model, baseline, onnx, json, isa;
  std::vector<std::string> rivals;
  int64_t threads = 0, runs = 60, batch_size = 1;
};

double milliseconds(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

// Anything that can be timed. Runs `count` times after a warm-up and returns the times in ms.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::vector<double> run(int count) = 0;
};

class EngineContender : public Contender {
 public:
  EngineContender(std::shared_ptr<const engine::Plan> plan, int threads, Isa isa)
      : executor(plan, {.threads = threads, .isa = isa}) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(0, 1);
    for (int input : plan->inputs) {
      inputs_.emplace_back(static_cast<size_t>(plan->buffers[static_cast<size_t>(input)].elements()));
      for (float& v : inputs_.back()) v = uniform(random);
      in.push_back(inputs_.back().data());
    }
    for (int output : plan->outputs) {
      outputs_.emplace_back(static_cast<size_t>(plan->buffers[static_cast<size_t>(output)].elements()) * 2);
      out.push_back(outputs_.back().data());
    }
  }
  std::vector<double> run(int count) override {
    for (const auto until = Clock::now() + std::chrono::milliseconds(50); Clock::now() < until;)
      executor.run(in.data(), out.data());
    std::vector<double> times;
    for (int i = 0; i < count; i++) {
      const auto start = Clock::now();
      executor.run(in.data(), out.data());
      times.push_back(milliseconds(Clock::now() - start));
    }
    return times;
  }
  engine::Executor executor;
  std::vector<const float*> in;
  std::vector<float*> out;

 private:
  std::vector<std::vector<float>> inputs_, outputs_;
};

class RivalContender : public Contender {
 public:
  explicit RivalContender(const RivalProcess::Options& options) : process(options) {}
  std::vector<double> run(int count) override { return process.run(count); }
  RivalProcess process;
};

struct Row {
  std::string name, kind;  // kind: octet_int8, octet_fp32, onnxruntime, openvino
  std::unique_ptr<Contender> contender;
  std::vector<double> times;
  double min() const { return times.front(); }
  double median() const { return times[times.size() / 2]; }
};

std::shared_ptr<const engine::Plan> load_plan(const std::string& path, int64_t batch, Isa isa) {
  require_file(path, "the model");
  if (path.size() > 6 && path.substr(path.size() - 6) == ".octet") return engine::load_engine(path);
  return std::make_shared<const engine::Plan>(lower::lower(load_network(path), {.batch = batch, .isa = isa, .dump_passes = {}}));
}

std::string engine_kind(const engine::Plan& plan) {
  const bool int8 = std::any_of(plan.steps.begin(), plan.steps.end(), [](const engine::Step& s) { return s.int8; });
  return int8 ? "octet_int8" : "octet_fp32";
}

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Mean microseconds of every step.
std::vector<double> profile(EngineContender& contender, int64_t runs) {
  contender.executor.set_profiling(true);
  contender.executor.clear_profile();
  for (int64_t i = 0; i < runs; i++) contender.executor.run(contender.in.data(), contender.out.data());
  contender.executor.set_profiling(false);
  std::vector<double> out;
  for (int64_t ns : contender.executor.step_nanoseconds())
    out.push_back(static_cast<double>(ns) / static_cast<double>(runs) / 1e3);
  return out;
}

ExitCode run(const Options& options) {
  const Isa isa = chosen_isa(options.isa);
  const int threads = options.threads > 0 ? static_cast<int>(options.threads) : available_cpus();
  const std::shared_ptr<const engine::Plan> plan = load_plan(options.model, options.batch_size, isa);
  const auto batch = plan->buffers[static_cast<size_t>(plan->inputs.at(0))].shape.at(0);
  std::vector<Row> rows;
  const auto add_engine = [&](const std::shared_ptr<const engine::Plan>& p) {
    const std::string kind = engine_kind(*p);
    rows.push_back({str("Octet ", kind == "octet_int8" ? "INT8" : "FP32", " (", isa_name(isa), ")"), kind,
                    std::make_unique<EngineContender>(p, threads, isa), {}});
  };
  add_engine(plan);
  if (!options.baseline.empty()) add_engine(load_plan(options.baseline, batch, isa));
  for (const std::string& rival : options.rivals) {
    std::string file = options.onnx;
    if (file.empty() && options.model.size() > 5 && options.model.substr(options.model.size() - 5) == ".onnx")
      file = options.model;
    if (file.empty()) fail_usage("--compare ", rival, ": name the ONNX file that it runs with --onnx");
    auto contender = std::make_unique<RivalContender>(
        RivalProcess::Options{rival, file, threads, static_cast<int>(batch)});
    rows.push_back({rival + " " + contender->process.version(), rival, std::move(contender), {}});
  }
  // In turns of 15 runs, so that a change of clock or a noisy neighbour hits everyone.
  for (int64_t done = 0; done < options.runs; done += 15)
    for (Row& row : rows) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const std::vector<double> times = row.contender->run(static_cast<int>(std::min<int64_t>(15, options.runs - done)));
      row.times.insert(row.times.end(), times.begin(), times.end());
    }
  for (Row& row : rows) std::sort(row.times.begin(), row.times.end());

  std::cout << cpu_model_name() << ", " << threads << (threads == 1 ? " thread" : " threads") << ", batch " << batch << ", "
            << options.runs << " runs in turns of 15\n\n";
  report::TextTable table({"engine", "min ms", "median ms", "times Octet's min"});
  nlohmann::ordered_json json = {{"model", options.model}, {"cpu", cpu_model_name()}, {"threads", threads},
                                 {"isa", isa_name(isa)}, {"batch", batch}, {"runs", options.runs},
                                 {"min_ms", rows[0].min()}, {"median_ms", rows[0].median()},
                                 {"results", nlohmann::ordered_json::array()}, {"layers", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    table.add_row({row.name, number(row.min(), 3), number(row.median(), 3), number(row.min() / rows[0].min(), 2)});
    json["results"].push_back({{"name", row.name}, {"kind", row.kind}, {"min_ms", row.min()}, {"median_ms", row.median()}});
  }
  std::cout << table.text() << "\n";

  auto& first = dynamic_cast<EngineContender&>(*rows[0].contender);
  const std::vector<double> step_us = profile(first, std::max<int64_t>(options.runs, 1));
  const std::vector<engine::LayerInfo> layers = engine::layer_list(*plan, isa);
  OCTET_CHECK(step_us.size() == layers.size(), step_us.size(), " against ", layers.size());
  double sum = 0;
  for (double us : step_us) sum += us;
  report::TextTable per_layer({"layer", "operation", "precision", "kernel", "us", "share %", "why not INT8"});
  for (size_t i = 0; i < layers.size(); i++) {
    const engine::LayerInfo& l = layers[i];
    per_layer.add_row({l.name, l.op, l.precision, l.kernel, number(step_us[i], 1), number(100 * step_us[i] / sum, 1), l.reason});
    json["layers"].push_back({{"name", l.name}, {"op", l.op}, {"precision", l.precision}, {"kernel", l.kernel},
                              {"us", step_us[i]}, {"reason", l.reason}});
  }
  std::cout << per_layer.text();
  if (!options.json.empty()) write_text_output(options.json, json.dump(1) + "\n");
  return ExitCode::kDone;
}

}  // namespace

Command bench_command() {
  return {.name = "bench",
          .summary = "Time an engine, layer by layer, beside others",
          .details = "Prints minimum and median latency on random images. --baseline adds a second engine (the FP32 one), "
                     "--compare adds ONNX Runtime or OpenVINO on an ONNX file; all take turns within the run. The table "
                     "per layer names precision, kernel, time and the reason where a layer is not INT8.",
          .examples = {"octet bench -m model.octet --baseline float.octet --compare onnxruntime --onnx float.onnx",
                       "octet bench -m model.qdq.onnx --compare onnxruntime,openvino --threads 1 --json bench.json"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<Options>();
            add_model_flag(app, options->model, "Engine file, or ONNX file compiled for the occasion", Need::kOptional);
            app.add_option("MODEL", options->model, "The same, without -m");
            app.add_option("--baseline", options->baseline, "Second engine or ONNX file to time");
            app.add_option("--compare", options->rivals, "onnxruntime, openvino, or both with a comma")
                ->delimiter(',')->check(CLI::IsMember({"onnxruntime", "openvino"}));
            app.add_option("--onnx", options->onnx, "ONNX file that the rivals run; default: MODEL if that is one");
            app.add_option("--runs", options->runs, "Timed runs")->check(CLI::Range(int64_t{1}, int64_t{1000000}))
                ->capture_default_str();
            add_batch_size_flag(app, options->batch_size)->description("Of ONNX files; engine files have their own");
            add_threads_flag(app, options->threads);
            add_isa_flag(app, options->isa);
            add_json_flag(app, options->json);
            return [options] { return run(*options); };
          }};
}

}  // namespace octet::cli
