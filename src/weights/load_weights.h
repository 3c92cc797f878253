// Weights of a file into a network, by name.
#pragma once
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "ir/graph.h"

namespace octet::weights {

struct LoadedWeight {
  enum class State {
    kLoaded,
    kMissing,     // the file has no tensor of this name; the network keeps its own
    kMismatched,  // ... has one of another shape; the network keeps its own
    kFolded,      // ... has a bias where the network has none but normalizes: batch norms were folded into it
  };
  std::string name;
  State state;
  ir::Shape network, file;  // file: empty where it is missing; network: empty where it is folded
};

struct WeightReport {
  std::vector<LoadedWeight> weights;  // parameters and running statistics, in the graph's order
  std::vector<std::string> unused;    // names of the file that the network does not have

  int64_t count(LoadedWeight::State state) const;
};

// Sets every parameter and running statistic of `graph` whose name and shape are those of a tensor in `file`. A class
// token that the file has apart is added to row 0 of its position embedding, where the networks of the zoo have it.
WeightReport load_weights(ir::Graph& graph, const checkpoint::NamedTensors& file);

// UserError (usage), starting with `path`, that names what does not fit and what to do: where nothing was loaded, and,
// unless `allow_modification`, where something is mismatched or folded.
void require_loaded(const WeightReport& report, const std::string& path, bool allow_modification);
// UserError (usage), starting with `path`, where not every weight of the network was loaded.
void require_all_loaded(const WeightReport& report, const std::string& path);

}  // namespace octet::weights
