// A task: what is learned, how it is decoded and how it is measured; without LibTorch. Each has a folder here, with its
// loss (for LibTorch) in a file of its own, loss.cc. Networks are ir::Graphs; a task says which it can take and what of
// them is run.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"

namespace octet::tasks {

// One output of a network for one batch: row-major float32, borrowed.
struct OutputView {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const float> values;
};
using Outputs = std::vector<OutputView>;  // in the order of the executed graph's outputs

using Metrics = std::map<std::string, double>;

// The metric by which models are compared.
struct MetricInfo {
  std::string name;   // as in Metrics
  std::string title;  // for people: "top-1 %"
  bool larger_is_better = true;
};

// Measures one pass over annotated images.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // UserError, naming the image, for annotations that the network cannot learn.
  virtual void add(const Outputs& outputs, const data::Batch& batch) = 0;
  virtual Metrics result() const = 0;
};

class Task {
 public:
  virtual ~Task() = default;
  // UserError (exit 2) for a network that is none of this task.
  virtual void check(const ir::Graph& network) const = 0;
  // What is trained and evaluated in the place of `network`: images in [N, C, H, W] to the outputs that the evaluator
  // and the loss take; over the same constants by name.
  virtual ir::Graph executed_graph(const ir::Graph& network) const = 0;
  virtual std::unique_ptr<Evaluator> evaluator() const = 0;
  virtual MetricInfo metric() const = 0;
};

}  // namespace octet::tasks
