// octet verify: does the engine compute what was trained?
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/experiment_data.h"
#include "cli/flags.h"
#include "cli/network_file.h"
#include "cli/verification.h"
#include "engine/engine_file.h"
#include "ir/infer.h"
#include "lower/lower.h"
#include "passes/fold_batch_norm.h"
#include "passes/snap_biases.h"
#include "report/progress.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

struct Options {
  SpecFlags spec;
  std::string model, engine, json, isa;
  int64_t threads = 0, tensor_images = 200, batch_size = 50;
  double agreement = 0.999;
};

nlohmann::ordered_json to_json(const Verification& v, const Options& options, bool holds) {
  nlohmann::ordered_json mismatches = nlohmann::ordered_json::array(), tensors = nlohmann::ordered_json::array();
  for (const Mismatch& m : v.mismatches)
    mismatches.push_back({{"image", m.image}, {"graph_class", m.graph_class}, {"engine_class", m.engine_class},
                          {"graph_margin", m.graph_margin}, {"different_codes", m.different_codes}});
  for (const TensorCheck& t : v.tensors)
    tensors.push_back({{"tensor", t.tensor}, {"elements", t.elements}, {"different", t.different}, {"ties", t.ties},
                       {"violations", t.violations}, {"largest_step", t.largest_step}});
  const double labelled = static_cast<double>(std::max<int64_t>(v.labelled, 1));
  return {{"model", options.model}, {"engine", options.engine}, {"holds", holds}, {"images", v.images},
          {"agree", v.agree}, {"agreement", v.agreement()},
          {"graph_top1", 100.0 * static_cast<double>(v.graph_hits) / labelled},
          {"engine_top1", 100.0 * static_cast<double>(v.engine_hits) / labelled},
          {"largest_score_difference", v.largest_score_difference}, {"tensor_images", v.tensor_images},
          {"violations", v.violations()}, {"mismatches", mismatches}, {"tensors", tensors}};
}

ExitCode run(const Options& options) {
  const spec::ExperimentSpec spec = options.spec.load();
  require_file(options.model, "-m");
  if (!options.engine.empty()) require_file(options.engine, "--engine_file");
  ir::Graph graph = load_network(options.model);
  passes::fold_batch_norm(graph);
  passes::snap_biases(graph);  // as at the end of a training: those of a checkpoint are not yet on the accumulator's grid
  ir::infer_shapes(graph);
  const Isa isa = chosen_isa(options.isa);
  // The engine file is read for its plan; its weights are the same at any batch, so a plan of our own with a larger batch
  // would do as well, but then it would not be the file that is deployed.
  const std::shared_ptr<const engine::Plan> plan =
      options.engine.empty()
          ? std::make_shared<const engine::Plan>(
                lower::lower(graph, {.batch = options.batch_size, .isa = isa, .dump_passes = {}}))
          : engine::load_engine(options.engine);
  engine::Executor engine(plan, {.threads = static_cast<int>(options.threads), .isa = isa});
  DataStream images = open_evaluation_data(spec, plan->buffers[static_cast<size_t>(plan->inputs.at(0))].shape.at(0));
  report::Progress progress({.label = "verify", .total = images.loader->images_per_epoch()});
  VerifyOptions verify;
  verify.tensor_images = options.tensor_images;
  verify.progress = [&](int64_t done) { progress.update(done); };
  const Verification v = verify_engine(graph, engine, *images.loader, verify);
  progress.finish();
  const bool holds = v.violations() == 0 && v.agreement() >= options.agreement;

  report::TextTable table({"quantised tensor", "codes compared", "different", "ties of one step", "wrong", "largest step"});
  for (const TensorCheck& t : v.tensors)
    table.add_row({t.tensor, std::to_string(t.elements), std::to_string(t.different), std::to_string(t.ties),
                   std::to_string(t.violations), std::to_string(t.largest_step)});
  std::cout << table.text();
  for (const Mismatch& m : v.mismatches)
    std::printf("image %lld: the graph says %d, the engine %d; the graph's margin is %.5f, %lld codes differ in its batch\n",
                static_cast<long long>(m.image), m.graph_class, m.engine_class, m.graph_margin,
                static_cast<long long>(m.different_codes));
  std::printf("%s: same top-1 on %lld of %lld images; %lld wrong codes in the tensors of %lld images; %s\n",
              holds ? "verified" : "NOT VERIFIED", static_cast<long long>(v.agree), static_cast<long long>(v.images),
              static_cast<long long>(v.violations()), static_cast<long long>(v.tensor_images), isa_name(isa));
  if (!options.json.empty()) write_text_output(options.json, to_json(v, options, holds).dump(1) + "\n");
  return holds ? ExitCode::kDone : ExitCode::kCheckFailed;
}

}  // namespace

Command verify_command() {
  return {.name = "verify",
          .summary = "Prove that an engine computes what was trained",
          .details = "Runs the fake-quantised model and the engine on the spec's test images. Top-1 classes must agree on "
                     "99.9 % of them, and every code that differs must be a tie: one step, the model's value on the "
                     "rounding border, computed from the engine's own codes of the layers before. Exit code 3 if not.",
          .examples = {"octet verify -e SPEC.yaml -m results/qat/model.onnx --engine_file results/model.octet"},
          .define = [](CLI::App& app) -> Run {
            auto options = std::make_shared<Options>();
            add_spec_flags(app, options->spec);
            add_model_flag(app, options->model, "Trained ONNX model with quantisers");
            add_engine_file_flag(app, options->engine, "Engine file; default: the model is compiled for the occasion");
            app.add_option("--tensor_images", options->tensor_images,
                           "Images whose tensors are compared code by code (mismatching ones always are)")
                ->check(CLI::Range(int64_t{0}, int64_t{100000000}))->capture_default_str();
            app.add_option("--agreement", options->agreement, "Smallest share of images with the same top-1")
                ->check(CLI::Range(0.0, 1.0))->capture_default_str();
            add_batch_size_flag(app, options->batch_size)->description("Of the occasional engine");
            add_threads_flag(app, options->threads);
            add_isa_flag(app, options->isa);
            add_json_flag(app, options->json);
            return [options] { return run(*options); };
          }};
}

}  // namespace octet::cli
