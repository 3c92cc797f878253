// The proof that an engine computes what was trained: the fake-quantised graph and the engine on the same images.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "engine/executor.h"
#include "ir/graph.h"

namespace octet::cli {

// One quantised tensor. Each is judged by itself: the graph computes it from the engine's own codes of the tensors before,
// so a difference cannot travel.
struct TensorCheck {
  std::string tensor;
  int64_t elements = 0;
  int64_t different = 0;     // codes that differ at all
  int64_t ties = 0;          // of these: by one step, and the graph's value lies on the border between the two codes
  int64_t violations = 0;    // all others: the engine is wrong there
  int64_t largest_step = 0;  // largest difference in codes
};

struct Mismatch {
  int64_t image;
  int graph_class, engine_class;
  double graph_margin;  // between the graph's two best scores
  int64_t different_codes;  // in the whole network, for this image
};

struct Verification {
  int64_t images = 0, agree = 0;
  int64_t graph_hits = 0, engine_hits = 0, labelled = 0;
  double largest_score_difference = 0;
  std::vector<Mismatch> mismatches;
  int64_t tensor_images = 0;  // images whose tensors were compared
  std::vector<TensorCheck> tensors;
  double agreement() const { return images ? static_cast<double>(agree) / static_cast<double>(images) : 0; }
  int64_t violations() const;
};

struct VerifyOptions {
  int64_t tensor_images = 200;  // the first images of the run whose tensors are compared; mismatching ones always are
  // How far from a rounding border, in steps, a differing code may lie: float32 summation order, and the bias that the
  // engine rounds to the accumulator's unit (half a unit is up to half a requantise multiplier, 0.01 of a step at most
  // in practice).
  double border = 0.02;
  std::function<void(int64_t done)> progress;
};

// `graph` has one image input and one output of scores; the engine was compiled from it. Reads one epoch of `loader`.
Verification verify_engine(const ir::Graph& graph, engine::Executor& engine, data::Loader& loader,
                           const VerifyOptions& options);

}  // namespace octet::cli
