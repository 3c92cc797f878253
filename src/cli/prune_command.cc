// octet prune: a smaller network, and the proof that nothing else changed.
#include <CLI/App.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/image_files.h"
#include "app/network_file.h"
#include "app/prune/proof.h"
#include "app/prune/search.h"
#include "app/prune/table.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "cli/model_flags.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "passes/prune/cut.h"
#include "report/format.h"
#include "report/status_log.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PruneOptions {
  SpecFlags spec;
  std::string model, json, results;
  OutputFlags output;
  passes::PruneOptions prune;
  app::PruneTarget target;
  std::string normalizer = "max", equalizer = "union", criterion = "L2", isa, data_type = "int8";
  std::vector<std::string> images;
  int64_t threads = 0;
  bool dry_run = false;
};

passes::PruneOptions prune_options(const PruneOptions& options) {
  passes::PruneOptions out = options.prune;
  out.normalizer = schema::parse_enum<passes::PruneNormalizer>("normalizer", options.normalizer);
  out.equalizer = schema::parse_enum<passes::PruneEqualizer>("equalization criterion", options.equalizer);
  out.criterion = schema::parse_enum<passes::PruneCriterion>("criterion", options.criterion);
  return out;
}

// Up to 16 of the images, as the spec, else the model, would have them for evaluation; random numbers where none are
// named.
std::vector<app::NetworkTensors> proof_inputs(const PruneOptions& options, const ir::Graph& sized) {
  if (options.images.empty()) return app::random_inputs(sized, 2);
  constexpr size_t kMost = 16;
  if (sized.inputs().size() != 1 || sized.inputs()[0]->type.shape->size() != 4)
    fail_usage("--images: the network has another input than one of images; without it, random numbers are taken");
  const ir::Shape& shape = *sized.inputs()[0]->type.shape;
  app::ModelFacts model{.path = options.model, .metadata = sized.metadata, .signature = tasks::signature_of(sized)};
  const spec::ExperimentSpec spec = experiment_for(options.spec, {}, model);
  app::DataStream stream = app::open_image_files(spec, options.images, {shape.begin() + 1, shape.end()}, shape[0]);
  std::vector<app::NetworkTensors> out;
  stream.loader->start_epoch(0);
  while (const auto batch = stream.loader->next()) {
    if (batch->size != shape[0] || out.size() == kMost) break;
    out.push_back({{batch->images.data(), batch->images.data() + batch->images.size()}});
  }
  if (out.empty()) fail("there are fewer images than the ", shape[0], " of a batch of this network");
  return out;
}

Json result_json(const PruneOptions& options, const app::PruneSearch& search, const app::PruneSummary& summary,
                 const app::PruneProof& proof) {
  Json out = {{"model", options.model}, {"output", options.dry_run ? Json() : Json(options.output.path)}};
  out["threshold"] = search.threshold;
  out["options"] = {{"normalizer", options.normalizer},
                    {"equalization_criterion", options.equalizer},
                    {"pruning_granularity", options.prune.granularity},
                    {"min_num_filters", options.prune.min_filters},
                    {"excluded_layers", options.prune.excluded},
                    {"criterion", options.criterion},
                    {"fold_bn", options.prune.fold_batch_norm},
                    {"tao_compatible", options.prune.tao_compatible}};
  if (search.times)
    out["latency"] = {{"whole_ms", search.times->whole_ms},
                      {"pruned_ms", search.times->pruned_ms},
                      {"share", search.times->share},
                      {"on", search.timed_on}};
  out["proof"] = {{"holds", proof.holds()},   {"by", proof.ran_by},
                  {"inputs", proof.inputs},   {"largest_difference", proof.largest_difference},
                  {"allowed", proof.allowed}, {"largest_output", proof.largest_output}};
  out.update(app::prune_json(summary));
  return out;
}

void tell(const app::PruneSearch& search, const app::PruneSummary& summary, const app::PruneProof& proof) {
  std::cout << app::prune_table(summary);
  std::cout << "pruning ratio (parameters after / before): " << report::fixed(summary.pruning_ratio(), 4)
            << ", threshold " << report::significant(search.threshold, 6) << "\n";
  if (search.times)
    std::cout << "latency: " << report::significant(search.times->whole_ms, 3) << " -> "
              << report::significant(search.times->pruned_ms, 3) << " ms (" << search.timed_on << ")\n";
  std::cout << "proof: pruned and masked network differ by at most " << report::significant(proof.largest_difference, 2)
            << " in outputs up to " << report::significant(proof.largest_output, 3) << " (allowed "
            << report::significant(proof.allowed, 2) << "), by " << proof.ran_by << ", " << proof.inputs
            << (proof.inputs == 1 ? " input" : " inputs") << "\n";
}

void log_status(const PruneOptions& options, const app::PruneSummary& summary) {
  if (options.results.empty()) return;
  make_results_directory(options.results);
  report::StatusRecord record;
  record.kind = "prune", record.status = report::RunStatus::kSuccess, record.message = "Pruning finished successfully.";
  record.kpi = {{"pruning_ratio", summary.pruning_ratio()},
                {"param_count", static_cast<double>(summary.parameters.after) * 1e-6}};
  record.details = {{"model", options.model}, {"output", options.output.path}};
  report::StatusLog(std::filesystem::path(options.results) / "status.jsonl").write(record);
}

ExitCode run_prune(const PruneOptions& options) {
  require_file(options.model, "-m");
  if (options.output.path.empty() && !options.dry_run)
    fail_usage("-o is missing: the ONNX file to write; or give --dry-run to see what would go");
  options.output.check();
  const ir::Graph graph = app::load_network(options.model, options.spec.input_shapes(options.model));
  const passes::ChannelGroups groups(graph, prune_options(options));
  app::PruneSearch search{.threshold = options.prune.threshold, .times = std::nullopt, .timed_on = ""};
  if (options.target.any())
    search = app::search_threshold(
        graph, groups, options.target,
        {.int8 = options.data_type == "int8", .threads = static_cast<int>(options.threads), .isa = options.isa});
  const passes::KeptIndices kept = groups.at(search.threshold);
  if (kept.empty())
    log_warning("nothing is pruned at the threshold ", search.threshold,
                groups.groups() == 0 ? ": no layer can lose channels" : ": no layer has so many channels below it");
  ir::Graph pruned = passes::cut_channels(graph, kept);
  const app::PruneSummary summary = app::summarize_pruning(graph, pruned, groups);
  describe_network(pruned, options.model, options.spec, {});
  pruned.metadata["octet.pruning_ratio"] = report::significant(summary.pruning_ratio(), 4);
  // What is proved is what is in the file.
  const std::string bytes = onnx::export_bytes(pruned);
  const ir::Graph sized = app::with_sizes(graph);
  const app::PruneProof proof =
      app::prove_pruned(passes::mask_channels(sized, kept), app::with_sizes(onnx::import_bytes(bytes, {})),
                        proof_inputs(options, sized), static_cast<int>(options.threads));
  tell(search, summary, proof);
  if (!options.json.empty()) write_json_output(options.json, result_json(options, search, summary, proof));
  if (!proof.holds())
    throw UserError(
        "the pruned network does not compute what the masked one does, and nothing was written; this is a fault of "
        "Octet, please report it with the model",
        ExitCode::kCheckFailed);
  if (options.dry_run) return ExitCode::kDone;
  write_file_atomically(options.output.path, bytes);
  log_status(options, summary);
  log_info("wrote ", options.output.path,
           "; train it again (model.pretrained, model.load_graph: true), without "
           "regularization");
  return ExitCode::kDone;
}

Run define(CLI::App& app) {
  auto options = std::make_shared<PruneOptions>();
  passes::PruneOptions& prune = options->prune;
  add_spec_flags(app, options->spec, Need::kOptional);
  add_input_shape_flag(app, options->spec);
  add_model_flag(app, options->model, "ONNX file: a float network");
  add_output_flags(app, options->output, "ONNX file to write", ".onnx", Need::kOptional);
  auto* threshold = add_number_flag(app, "--pruning_threshold", prune.threshold, 0, 1e6,
                                    "-pth: channels whose normalized norm is not above this go");
  threshold->capture_default_str();
  add_number_flag(app, "--pruning_granularity", prune.granularity, 1, 4096,
                  "-pg: layers keep a multiple of this many channels")
      ->capture_default_str();
  add_number_flag(app, "--min_num_filters", prune.min_filters, 1, 1'000'000, "-nf: and at least this many")
      ->capture_default_str();
  limit_to<passes::PruneNormalizer>(
      app.add_option("-n,--normalizer", options->normalizer,
                     "max: norms as shares of the layer's largest; L2: in units of their root mean square / sqrt(n)"))
      ->capture_default_str();
  limit_to<passes::PruneEqualizer>(
      app.add_option("--equalization_criterion", options->equalizer,
                     "-eq: of layers whose channels go together (residual connections); union takes the largest norm, "
                     "intersection the smallest"))
      ->capture_default_str();
  app.add_option("--excluded_layers", prune.excluded, "-el: nodes that keep all channels, with * and ?")
      ->type_name("NAME");
  limit_to<passes::PruneCriterion>(
      app.add_option("--criterion", options->criterion,
                     "Norm of a filter: L1, L2, or bn_scale, that of the batch normalization behind it"))
      ->capture_default_str();
  app.add_flag("--fold_bn", prune.fold_batch_norm,
               "Norms of the weights with their batch normalization folded in, not of the weights alone");
  app.add_flag("--tao_compatible", prune.tao_compatible,
               "Leave whole what TAO leaves whole: outputs of ConvTranspose, what a Split cuts");
  auto* parameters = add_number_flag(app, "--target-params,--target_params", options->target.parameters, 1e-6, 0.999999,
                                     "The threshold that leaves this share of the parameters (0.3)");
  auto* macs = add_number_flag(app, "--target-macs,--target_macs", options->target.macs, 1e-6, 0.999999,
                               "... this share of the multiply-accumulates");
  auto* latency = app.add_option("--target-latency,--target_latency", options->target.latency,
                                 "... this share of the engine's time, or milliseconds (4.5ms), as measured on this "
                                 "machine with candidates beside the whole network")
                      ->type_name("X|Xms");
  parameters->excludes(threshold)->excludes(macs)->excludes(latency);
  macs->excludes(threshold)->excludes(latency);
  latency->excludes(threshold);
  add_data_type_flag(app, options->data_type)->description("Engine of --target-latency: int8 (default) or fp32");
  app.add_flag("--dry-run,--dry_run", options->dry_run, "Show what would go, and write no model");
  app.add_option(
         "-i,--images", options->images,
         "Image files or folders for the proof (up to 16 batches; the model or -e says how they are read); without, "
         "random numbers")
      ->type_name("PATH");
  add_json_flag(app, options->json);
  add_results_flag(app, options->results, Need::kOptional)->description("Folder for status.jsonl");
  add_threads_flag(app, options->threads);
  add_isa_flag(app, options->isa);
  add_key_flag(app);
  return [options] { return run_prune(*options); };
}

}  // namespace

Command prune_command() {
  return {.name = "prune",
          .summary = "Take channels out of a float network, as TAO does, and prove that nothing else changed",
          .details =
              "In every layer the filters with the smallest weights go, and with them their channel in all that is "
              "behind: normalizations, residual connections, depthwise layers, Concat, Split, Flatten. Layers whose "
              "channels are tied go together (groups). The threshold is TAO's, or one that reaches a target. Prints a "
              "table of the layers, and proves that the pruned network computes what the whole one does with these "
              "channels set to zero (exit code 3 if not). Train the result again before it is quantized: "
              "docs/pruning.md.",
          .examples = {"octet prune -m results/float/model.onnx -o results/pruned.onnx -pth 0.3",
                       "octet prune -m model.onnx -o pruned.onnx --target-params 0.3 -pg 16 -el 'layer4*'",
                       "octet prune -m model.onnx -o pruned.onnx --target-latency 0.5 --threads 2",
                       "octet prune -m model.onnx --dry-run -pth 0.5 --json plan.json"},
          .define = define,
          .single_dash = {{"-pth", "--pruning_threshold"},
                          {"-pg", "--pruning_granularity"},
                          {"-nf", "--min_num_filters"},
                          {"-eq", "--equalization_criterion"},
                          {"-el", "--excluded_layers"}}};
}

}  // namespace octet::cli
