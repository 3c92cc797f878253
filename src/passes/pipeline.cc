#include "passes/pipeline.h"

#include <cstdio>

#include "base/files.h"
#include "base/nearest.h"
#include "ir/infer.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/cancel_transposes.h"
#include "passes/canonicalize_activations.h"
#include "passes/fold_batch_norm.h"
#include "passes/fold_constants.h"
#include "passes/fuse_pad.h"
#include "passes/mark_trainable.h"
#include "passes/place_fake_quant.h"
#include "passes/remove_identity.h"
#include "passes/snap_biases.h"

namespace octet::passes {
namespace {

void dump(const ir::Graph& graph, const std::filesystem::path& directory, size_t index, const std::string& name) {
  if (directory.empty()) return;
  char number[16];
  std::snprintf(number, sizeof number, "%02zu_", index);
  write_file_atomically(directory / (number + name + ".txt"), ir::to_text(graph));
}

}  // namespace

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = {
      {"remove_identity", "take out Identity, Dropout and casts to the same type",
       [](ir::Graph& g) { return remove_identity(g); }},
      {"fold_constants", "compute what is constant, fold constant arithmetic into weights", fold_constants},
      {"cancel_transposes", "take out pairs of layout changes", cancel_transposes},
      {"fuse_pad", "move zero padding into convolutions and pools", fuse_pad},
      {"canonicalize_activations", "write ReLU and clipped ReLU in one form", canonicalize_activations},
      {"fold_batch_norm", "fold batch normalisation into weights", fold_batch_norm},
      {"place_fake_quant", "put quantisers where the rules want them",
       [](ir::Graph& g) { return place_fake_quant(g); }},
      {"remove_fake_quant", "take all quantisers out", remove_fake_quant},
      {"snap_biases", "put biases of quantised layers on the accumulator's grid", snap_biases},
      {"mark_trainable", "mark the constants that an optimiser updates", mark_trainable},
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
  dump(graph, options.dump_directory, 0, "input");
  std::vector<PassResult> results;
  for (const Pass& pass : passes) {
    results.push_back({pass.name, pass.run(graph)});
    ir::infer_shapes(graph);
    dump(graph, options.dump_directory, results.size(), pass.name);
    if (!options.verify) continue;
    try {
      ir::verify(graph);
    } catch (const UserError& error) {
      OCTET_CHECK(false, "after pass ", pass.name, ": ", error.what());
    }
  }
  return results;
}

std::vector<Pass> preparation_passes(bool keep_dropout) {
  Pass identity = find_pass("remove_identity");
  if (keep_dropout) identity.run = [](ir::Graph& g) { return remove_identity(g, {.keep_dropout = true}); };
  // Layout first, so that the others see convolutions next to what they are fused with; constants before and after
  // batch norms, because importers write normalisation as arithmetic too.
  return {identity,
          find_pass("fold_constants"),
          find_pass("cancel_transposes"),
          find_pass("fuse_pad"),
          find_pass("canonicalize_activations"),
          find_pass("fold_batch_norm"),
          find_pass("fold_constants")};
}

}  // namespace octet::passes
