#include "passes/pipeline.h"

#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/files.h"
#include "base/log.h"
#include "base/nearest.h"
#include "ir/infer.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/cancel_transposes.h"
#include "passes/canonicalize_activations.h"
#include "passes/equalize_channels.h"
#include "passes/fold_batch_norm.h"
#include "passes/fold_constants.h"
#include "passes/fuse_pad.h"
#include "passes/mark_trainable.h"
#include "passes/place_fake_quant.h"
#include "passes/remove_identity.h"
#include "passes/silence_constant_channels.h"
#include "passes/sink_squeezes.h"
#include "passes/snap_biases.h"

namespace octet::passes {
namespace {

void dump(const ir::Graph& graph, const std::filesystem::path& directory, size_t index, const std::string& name) {
  if (directory.empty()) return;
  char number[16];
  std::snprintf(number, sizeof number, "%02zu_", index);
  write_file_atomically(directory / (number + name + ".txt"), ir::to_text(graph));
}

// What ir::verify says of it; empty: it is whole.
std::string problem_of(const ir::Graph& graph) {
  try {
    ir::verify(graph);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = {
      {"remove_identity", "take out Identity, Dropout and casts to the same type",
       [](ir::Graph& g) { return remove_identity(g); }},
      {"fold_constants", "compute what is constant, fold constant arithmetic into weights", fold_constants},
      {"cancel_transposes", "take out pairs of layout changes", cancel_transposes},
      {"sink_squeezes", "compute on images between Squeeze and Unsqueeze", sink_squeezes},
      {"fuse_pad", "move zero padding into convolutions and pools", fuse_pad},
      {"canonicalize_activations", "write ReLU and clipped ReLU in one form", canonicalize_activations},
      {"silence_constant_channels", "take channels that are constant out of batch normalization",
       silence_constant_channels},
      {"fold_batch_norm", "fold batch normalization, as a node or as arithmetic, into weights", fold_batch_norm},
      {"equalize_channels", "even out the ranges of channels across layers, by powers of two",
       [](ir::Graph& g) { return equalize_channels(g).pairs; }},
      {"place_fake_quant", "put quantizers where the rules want them",
       [](ir::Graph& g) { return place_fake_quant(g); }},
      {"remove_fake_quant", "take all quantizers out", remove_fake_quant},
      {"snap_biases", "put biases of quantized layers on the accumulator's grid", snap_biases},
      {"mark_trainable", "mark the constants that an optimizer updates", mark_trainable},
  };
  return passes;
}

const Pass& find_pass(const std::string& name) {
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) {
    if (pass.name == name) return pass;
    names.push_back(pass.name);
  }
  fail_usage("there is no pass '", name, "'", did_you_mean(name, names));
}

std::vector<PassResult> run_pipeline(ir::Graph& graph, const std::vector<Pass>& passes,
                                     const PipelineOptions& options) {
  if (!options.dump_directory.empty()) make_results_directory(options.dump_directory);
  if (options.passes_before == 0) dump(graph, options.dump_directory, 0, "input");
  const bool verify = options.verify && problem_of(graph).empty();
  std::vector<PassResult> results;
  for (const Pass& pass : passes) {
    const auto start = std::chrono::steady_clock::now();
    const int changes = pass.run(graph);
    ir::infer_shapes(graph);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    results.push_back({pass.name, changes, taken.count()});
    if (changes > 0) log_debug(pass.name, ": ", changes, " changes in ", std::lround(taken.count() * 1e6), " us");
    dump(graph, options.dump_directory, options.passes_before + results.size(), pass.name);
    if (!verify || changes == 0) continue;
    const std::string problem = problem_of(graph);
    OCTET_CHECK(problem.empty(), "after pass ", pass.name, ": ", problem);
  }
  return results;
}

}  // namespace octet::passes
