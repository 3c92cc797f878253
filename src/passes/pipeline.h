// Which passes there are, and what runs a list of them. The lists that the stages run: pipelines.h.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

struct Pass {
  std::string name;                    // snake case, that of its file
  std::string description;             // one line
  std::function<int(ir::Graph&)> run;  // returns the number of changes
};

// Every pass that needs no further input, with default options.
const std::vector<Pass>& all_passes();
// UserError (exit 2) with the nearest name for an unknown one.
const Pass& find_pass(const std::string& name);

struct PipelineOptions {
  // Writes the graph as text after every pass: DIR/00_input.txt, DIR/01_fold_constants.txt ... Empty: no dumps.
  std::filesystem::path dump_directory;
  // How many passes of the stage ran before, in another call: the dumps go on behind theirs, without an input again.
  size_t passes_before = 0;
  // Verifies the graph after every pass that changed it; a broken one is an internal error that names the pass. A graph
  // that was broken before is not: whoever reads it on will say what is wrong.
  bool verify = true;
};

struct PassResult {
  std::string name;
  int changes;
  double seconds;
};

// Runs the passes in order, inferring types after each.
std::vector<PassResult> run_pipeline(ir::Graph& graph, const std::vector<Pass>& passes,
                                     const PipelineOptions& options = {});

}  // namespace octet::passes
