// octet verify: does the engine compute what was trained?
#include <CLI/App.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/class_names.h"
#include "app/experiment_data.h"
#include "app/network_file.h"
#include "app/verification.h"
#include "base/error.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "cli/model_flags.h"
#include "cli/open_model.h"
#include "engine/engine_file.h"
#include "engine/profiles.h"
#include "lower/lower.h"
#include "metrics/share_interval.h"
#include "passes/pipelines.h"
#include "report/format.h"
#include "report/progress.h"
#include "report/text_table.h"
#include "tasks/image_graph.h"

namespace octet::cli {
namespace {

struct VerifyOptions {
  SpecFlags spec;
  ModelFlags input;
  std::string images, model, engine, json, isa, reference;
  int64_t threads = 0, batch_size = 50;
  int64_t tensor_images = 0;  // not given
  double agreement = -1;      // not asked for
};

const char* place_name(app::TensorPlace place) {
  switch (place) {
    case app::TensorPlace::kCompared:
      return "compared";
    case app::TensorPlace::kMerged:
      return "merged";
    case app::TensorPlace::kMissing:
      return "missing";
    case app::TensorPlace::kOtherScale:
      return "other scale";
  }
  return "";
}

nlohmann::ordered_json to_json(const app::Verification& v, const VerifyOptions& options, const std::string& objection) {
  nlohmann::ordered_json mismatches = nlohmann::ordered_json::array(), tensors = nlohmann::ordered_json::array(),
                         scores = nlohmann::ordered_json::array();
  for (const app::Mismatch& m : v.mismatches)
    mismatches.push_back(
        {{"image", m.image}, {"graph", m.graph}, {"engine", m.engine}, {"different_codes", m.different_codes}});
  for (const app::TensorCheck& t : v.tensors)
    tensors.push_back({{"tensor", t.tensor},
                       {"place", place_name(t.place)},
                       {"note", t.note},
                       {"elements", t.elements},
                       {"different", t.different},
                       {"ties", t.ties},
                       {"violations", t.violations},
                       {"largest_step", t.largest_step}});
  for (const app::ScoreCheck& s : v.scores)
    scores.push_back({{"output", s.output},
                      {"elements", s.elements},
                      {"largest_difference", s.largest_difference},
                      {"tolerance", s.tolerance()},
                      {"magnitude", s.magnitude},
                      {"different", s.different}});
  nlohmann::ordered_json j = {{"model", options.model},
                              {"engine", options.engine},
                              {"holds", objection.empty()},
                              {"objection", objection},
                              {"reference", reference_name(options.reference)},
                              {"images", v.images}};
  if (v.predicts) {
    j["agree"] = v.agree;
    j["agreement"] = v.agreement();
    const metrics::Interval interval = metrics::share_interval(v.agree, v.images);
    j["agreement_interval"] = {interval.low, interval.high};
    j["compared"] = v.distance.compared;
    j["near"] = v.distance.near;
    j["unmatched"] = v.distance.unmatched;
    j["largest_box_difference"] = v.distance.box;
    j["largest_score_difference"] = v.distance.score;
    for (const auto& [name, value] : v.graph_metrics) j["graph_" + name] = value;
    for (const auto& [name, value] : v.engine_metrics) j["engine_" + name] = value;
  }
  j["tensor_images"] = v.tensor_images;
  j["violations"] = v.violations();
  j["mismatches"] = mismatches;
  j["tensors"] = tensors;
  j["scores"] = scores;
  return j;
}

// How far the predictions are apart, in the terms of the task.
std::string distance_text(const tasks::Distance& d) {
  using report::fixed;
  if (!d.of_boxes)
    return str("probabilities: ", d.near, " of ", d.compared, " images within ", fixed(d.kNearScore, 2),
               "; largest difference ", fixed(d.score, 4));
  return str("objects: ", d.near, " of ", d.compared, " within ", fixed(d.kNearBox, 1), " pixels and ",
             fixed(d.kNearScore, 2), " of the score, ", d.unmatched, " without counterpart; largest differences ",
             fixed(d.box, 3), " pixels and ", fixed(d.score, 4));
}

void print(const app::Verification& v, const std::string& objection, Isa isa) {
  report::TextTable table({"quantized tensor", "codes compared", "different", "ties of one step", "wrong",
                           "largest step", "why not compared"});
  for (const app::TensorCheck& t : v.tensors)
    table.add_row({t.tensor, std::to_string(t.elements), std::to_string(t.different), std::to_string(t.ties),
                   std::to_string(t.violations), std::to_string(t.largest_step), t.note});
  std::cout << table.text();
  for (const app::ScoreCheck& s : v.scores) {
    if (s.discrete)
      std::printf("output %s: %lld of %lld elements differ\n", printable_line(s.output).c_str(),
                  static_cast<long long>(s.different), static_cast<long long>(s.elements));
    else
      std::printf("output %s: largest difference %.3g of values up to %.4g, tolerance %.3g\n",
                  printable_line(s.output).c_str(), s.largest_difference, s.magnitude, s.tolerance());
  }
  for (const app::Mismatch& m : v.mismatches)
    std::printf("image %lld: the graph says %s, the engine %s; %lld codes differ in its batch\n",
                static_cast<long long>(m.image), m.graph.c_str(), m.engine.c_str(),
                static_cast<long long>(m.different_codes));
  if (v.predicts) std::printf("%s\n", distance_text(v.distance).c_str());
  std::string counts;
  if (v.predicts) {
    const metrics::Interval share = metrics::share_interval(v.agree, v.images);
    counts = str("same prediction on ", v.agree, " of ", v.images, " images (with 95 % certainty on ",
                 report::fixed(std::floor(10000 * share.low) / 100, 2), " to ",
                 report::fixed(std::ceil(10000 * share.high) / 100, 2), " %); ");
  }
  counts += str(v.count(app::TensorPlace::kCompared), " of ", v.tensors.size(), " quantized tensors compared");
  if (const int64_t merged = v.count(app::TensorPlace::kMerged)) counts += str(", ", merged, " within steps");
  std::printf("%s%s; %lld wrong codes in the tensors of %lld images; %s\n",
              objection.empty() ? "verified: " : ("NOT VERIFIED: " + printable_line(objection) + "; ").c_str(),
              counts.c_str(), static_cast<long long>(v.violations()), static_cast<long long>(v.tensor_images),
              isa_name(isa));
}

// The input of the engine must be one that the model can have.
void require_same_input(const data::NetworkInput& network, const std::vector<int64_t>& shape) {
  const auto fits = [](int64_t wanted, int64_t has) { return wanted < 0 || wanted == has; };
  const size_t front = network.single ? 0 : 1;  // the batch
  const size_t c = front + (network.nhwc ? 2 : 0), h = front + (network.nhwc ? 0 : 1);
  if (shape.size() == front + 3 && fits(network.channels, shape[c]) && fits(network.height, shape[h]) &&
      fits(network.width, shape[h + 1]))
    return;
  throw UserError(str("input '", network.name, "' of the model is ",
                      ir::shape_string(network.shape(network.batch > 0 ? network.batch : ir::kDynamic, network.channels,
                                                     network.height, network.width)),
                      ", that of the engine ", ir::shape_string(shape), "; was it compiled from this model?"),
                  ExitCode::kCheckFailed);
}

// One size of the input. Returns what does not hold.
std::string verify_plan(const ir::Graph& graph, const data::NetworkInput& network,
                        const std::shared_ptr<const engine::Plan>& own, const std::shared_ptr<const engine::Plan>& plan,
                        const app::Reference& reference, spec::ExperimentSpec spec, const VerifyOptions& options,
                        nlohmann::ordered_json* json) {
  const std::vector<int64_t>& shape = plan->buffers[static_cast<size_t>(plan->inputs.at(0))].shape;
  const data::NetworkInput sizes = data::read_network_input(network.name, shape);
  spec.model.input = {sizes.channels, sizes.height, sizes.width};
  engine::Executor engine(plan, {.threads = static_cast<int>(options.threads), .isa = chosen_isa(options.isa)});
  app::DataStream images =
      app::open_evaluation_data(spec, sizes.batch, app::class_names_of(graph.metadata, options.model));
  spec.task->name_classes(images.dataset->class_names());
  report::Progress progress({.label = "verify", .total = images.loader->images_per_epoch()});
  app::VerifyOptions verify;
  if (options.tensor_images > 0) verify.tensor_images = options.tensor_images;
  // The plain reference takes long, and one image after the other finds the same.
  if (options.tensor_images == 0 && reference_name(options.reference) == "plain") verify.tensor_images = 20;
  verify.progress = [&](int64_t done) { progress.update(done); };
  const app::Verification v =
      app::verify_engine(graph, own, engine, sizes, reference, *spec.task, *images.loader, verify);
  progress.finish();
  const std::string objection =
      v.objection(options.agreement < 0 ? std::nullopt : std::optional<double>(options.agreement));
  print(v, objection, engine.isa());
  *json = to_json(v, options, objection);
  return objection;
}

ExitCode run_verify(const VerifyOptions& options) {
  require_file(options.model, "-m");
  if (!options.engine.empty()) require_file(options.engine, "--engine_file");
  const std::unique_ptr<app::Reference> reference = open_reference(options.reference, options.threads);
  if (options.agreement >= 0 && reference_name(options.reference) == "plain")
    fail_usage("--agreement asks what the model predicts, which LibTorch alone computes (octet_training, --reference ",
               "libtorch); without it the codes are proven");
  ir::Graph graph = app::load_network(options.model, options.spec.input_shapes(options.model));
  if (graph.inputs().size() != 1)
    fail_usage(options.model, ": has ", graph.inputs().size(), " inputs; verify takes networks with one image input");
  app::ModelFacts model{.path = options.model, .metadata = graph.metadata, .signature = tasks::signature_of(graph)};
  const spec::ExperimentSpec spec = experiment_to_feed(with_images(options.spec, options.images), options.input, model);
  graph.metadata = model.metadata;
  const data::NetworkInput network = tasks::image_input(graph);
  passes::run_pipeline(graph, passes::checkpoint_passes());
  if (app::count_activation_quantizers(graph) == 0) {
    std::printf("NOT VERIFIED: nothing was compared\n");
    throw UserError(options.model +
                        ": has no quantizers, so there is nothing that could be verified; give the model that "
                        "octet calibrate or octet train --stage qat wrote",
                    ExitCode::kCheckFailed);
  }
  const auto compiled = [&](const std::vector<int64_t>& shape) {
    return std::make_shared<const engine::Plan>(
        lower::lower(graph, {.input_shape = shape, .isa = chosen_isa(options.isa), .dump_passes = {}}));
  };
  nlohmann::ordered_json json;
  std::string objection;
  if (options.engine.empty()) {
    const auto open = [&](int64_t own, size_t i) { return own >= 0 ? own : spec.model.input.at(i); };
    const auto own =
        compiled(network.shape(network.batch > 0 ? network.batch : options.batch_size, open(network.channels, 0),
                               open(network.height, 1), open(network.width, 2)));
    objection = verify_plan(graph, network, own, own, *reference, spec, options, &json);
  } else {
    // Its own plan, for every size that it was compiled for: that is the file that is deployed.
    const std::shared_ptr<const engine::Plan> file = engine::load_engine(options.engine);
    for (int i = 0; i <= static_cast<int>(file->profiles.size()); ++i) {
      const std::shared_ptr<const engine::Plan> plan = engine::profile_of(file, i);
      const std::vector<int64_t>& shape = plan->buffers[static_cast<size_t>(plan->inputs.at(0))].shape;
      require_same_input(network, shape);
      if (!file->profiles.empty()) std::printf("profile %s:\n", ir::shape_string(shape).c_str());
      nlohmann::ordered_json result;
      const std::string what = verify_plan(graph, network, compiled(shape), plan, *reference, spec, options, &result);
      if (i == 0 || (objection.empty() && !what.empty())) json = result;  // the first that does not hold speaks for all
      if (objection.empty() && !what.empty()) objection = str("profile ", ir::shape_string(shape), ": ", what);
    }
    // The last line is of all profiles.
    if (!file->profiles.empty())
      std::printf("%s\n", objection.empty() ? str("verified: all ", file->profiles.size() + 1, " profiles").c_str()
                                            : ("NOT VERIFIED: " + printable_line(objection)).c_str());
  }
  if (!options.json.empty()) write_json_output(options.json, std::move(json));
  return objection.empty() ? ExitCode::kDone : ExitCode::kCheckFailed;
}

}  // namespace

Command verify_command() {
  return {
      .name = "verify",
      .summary = "Prove that an engine computes what was trained",
      .details =
          "Runs the fake-quantized model and the engine on the spec's test images. Every quantized tensor of the "
          "model must be in the engine (but for those that its steps keep to themselves: the table says "
          "which), and every code that differs must be a tie: one step, the model's value on the rounding "
          "border (or within a quarter of a step of it, behind an activation that the engine computes on lines), "
          "computed from the engine's own codes of the layers before. The outputs, computed from the "
          "same codes, must agree as numbers as far as float32 goes. That is the proof. On how many images both say "
          "the same (top-1 class, sure objects) is told with what that says of further ones, and asked for only by "
          "--agreement. Without LibTorch the model is computed by plain rules, which take seconds for an image, so "
          "that fewer images are compared, and nothing is told of predictions; the proof of the codes is the same. "
          "Engines of several profiles are verified in each. Exit code 3 if something does not hold, "
          "which the last line names, or if there is nothing to compare.",
      .examples = {"octet verify -m results/qat/model.onnx --engine_file results/model.octet --images photos/test",
                   "octet verify -e SPEC.yaml -m results/qat/model.onnx --engine_file results/model.octet"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<VerifyOptions>();
        add_spec_flags(app, options->spec, Need::kOptional);
        add_labeled_images_flag(app, options->images);
        add_model_flags(app, options->input);
        add_input_shape_flag(app, options->spec);
        add_model_flag(app, options->model, "Trained ONNX model with quantizers");
        add_engine_file_flag(app, options->engine, "Engine file; default: the model is compiled for the occasion");
        app.add_option("--tensor_images", options->tensor_images,
                       "Images whose tensors and outputs are compared, and with LibTorch all that mismatch (default: "
                       "200, or 20 without LibTorch)")
            ->check(CLI::Range(int64_t{1}, int64_t{100000000}));
        add_number_flag(
            app, "--agreement", options->agreement, 0, 1,
            "Smallest share of images with the same prediction (unless given, any: the proof is the codes)");
        limit_to(app.add_option("--reference", options->reference,
                                "Who computes the model (default: libtorch where octet_training is there, else plain)"),
                 "plain|libtorch");
        add_batch_size_flag(app, options->batch_size)
            ->description("Of the occasional engine, where the model leaves it open");
        add_threads_flag(app, options->threads);
        add_isa_flag(app, options->isa);
        add_json_flag(app, options->json);
        return [options] { return run_verify(*options); };
      }};
}

}  // namespace octet::cli
