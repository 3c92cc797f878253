// octet diagnose: what each quantizer of a model costs, the worst first.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/experiment_data.h"
#include "app/image_files.h"
#include "app/network_file.h"
#include "app/suspects.h"
#include "base/error.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/diagnose_flags.h"
#include "cli/json_output.h"
#include "passes/pipelines.h"
#include "report/progress.h"
#include "report/text_table.h"
#include "tasks/image_graph.h"
#include "train/quantization_error.h"
#include "train/torch_runtime.h"

namespace octet::cli {
namespace {

std::string number(double value, const char* format = "%.1f") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// "conv2, conv3 and 4 more"
std::string readers_text(const std::vector<std::string>& readers) {
  std::string out;
  for (size_t i = 0; i < readers.size() && i < 2; ++i) out += (i ? ", " : "") + readers[i];
  return readers.size() > 2 ? str(out, " and ", readers.size() - 2, " more") : out;
}

std::string advice_on(const ir::Graph& graph, const train::QuantizerError& e) {
  return app::advice(graph, {.quantizer = e.quantizer, .own_db = e.own_db, .clipped = e.clipped});
}

// Weights whose codes give them back exactly: they were put there before, by adaptive rounding or by who wrote codes.
int64_t count_on_grid(const train::QuantizationErrors& found) {
  return std::count_if(found.quantizers.begin(), found.quantizers.end(),
                       [](const train::QuantizerError& e) { return e.of_weights && e.own_db >= train::kNoNoise; });
}

nlohmann::ordered_json to_json(const ir::Graph& graph, const train::QuantizationErrors& found,
                               const std::string& model) {
  nlohmann::ordered_json quantizers = nlohmann::ordered_json::array();
  for (const train::QuantizerError& e : found.quantizers)
    quantizers.push_back({{"quantizer", e.quantizer},
                          {"tensor", e.tensor},
                          {"readers", e.readers},
                          {"weights", e.of_weights},
                          {"isolated_db", e.isolated_db ? nlohmann::ordered_json(*e.isolated_db) : nullptr},
                          {"fisher_db", e.fisher_db},
                          {"own_db", e.own_db},
                          {"cumulative_db", e.cumulative_db},
                          {"cosine", e.cosine},
                          {"clipped", e.clipped},
                          {"advice", advice_on(graph, e)}});
  return {{"model", model},
          {"images", found.images},
          {"output_db", found.output_db},
          {"weights_on_grid", count_on_grid(found)},
          {"quantizers", quantizers}};
}

void print(const ir::Graph& graph, const train::QuantizationErrors& found, int64_t rows) {
  report::TextTable table(
      {"quantized tensor", "read by", "outputs, it alone", "by Fisher", "itself", "so far", "cosine", "clipped %"});
  const auto shown = std::min<size_t>(found.quantizers.size(), static_cast<size_t>(rows));
  for (size_t i = 0; i < shown; ++i) {
    const train::QuantizerError& e = found.quantizers[i];
    table.add_row({printable_line(e.tensor), printable_line(readers_text(e.readers)),
                   e.isolated_db ? number(*e.isolated_db) + " dB" : "-", number(e.fisher_db) + " dB",
                   number(e.own_db) + " dB", number(e.cumulative_db) + " dB", number(e.cosine, "%.5f"),
                   number(100 * e.clipped, "%.3f")});
  }
  std::cout << table.text();
  if (shown < found.quantizers.size())
    std::printf("(%zu of %zu quantizers; --rows shows more, --json has all)\n", shown, found.quantizers.size());
  std::cout << "what may help:\n";
  for (size_t i = 0; i < std::min<size_t>(shown, 5); ++i)
    std::cout << "  " << printable_line(found.quantizers[i].tensor) << ": "
              << printable_line(advice_on(graph, found.quantizers[i])) << '\n';
  std::printf("outputs with all quantizers: %.1f dB of signal to noise, on %lld images\n", found.output_db,
              static_cast<long long>(found.images));
  if (const int64_t on_grid = count_on_grid(found); on_grid > 0)
    std::printf(
        "not in these figures: what %lld weight%s lost before, as %s on %s grid already (adaptive rounding, or a "
        "file with codes); diagnose the model from before that\n",
        static_cast<long long>(on_grid), on_grid == 1 ? "" : "s", on_grid == 1 ? "it lies" : "they lie",
        on_grid == 1 ? "its" : "their");
}

ExitCode run_diagnose(const DiagnoseOptions& options) {
  require_file(options.model, "-m");
  ir::Graph graph = app::load_network(options.model, options.spec.input_shapes(options.model));
  passes::run_pipeline(graph, passes::checkpoint_passes());
  spec::ExperimentSpec spec = options.spec.load();
  app::require_sizes(tasks::signature_of(graph), spec.model, options.model);
  spec.quant.calibration.images = options.count;
  spec.quant.calibration.batch_size = options.batch_size;
  train::initialize_torch();
  const data::NetworkInput input = tasks::image_input(graph);
  const std::vector<int64_t> shape = {input.channels, input.height, input.width};
  const app::DataStream images =
      options.images.empty() ? app::open_calibration_data(spec, tasks::images_at_a_time(graph))
                             : app::open_calibration_files(spec, options.images, shape, tasks::images_at_a_time(graph));
  report::Progress progress({.label = "diagnosis", .total = 100, .unit = "%"});
  const train::QuantizationErrors found = train::measure_quantization_errors(
      tasks::image_graph(graph), *images.loader, options.count,
      [&](int64_t done, int64_t of) { progress.update(100 * done / of); }, !options.quick);
  progress.finish();
  if (options.json != "-") print(graph, found, options.rows);
  if (!options.json.empty()) write_json_output(options.json, to_json(graph, found, options.model));
  return ExitCode::kDone;
}

}  // namespace

Command diagnose_command() {
  return diagnose_command_with(run_diagnose);
}

}  // namespace octet::cli
