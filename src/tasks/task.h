// A task: what is learned, how it is decoded and how it is measured; without LibTorch. Each has a folder here, with its
// loss (for LibTorch) in a file of its own, loss.cc, and a row in tasks.def. Networks are ir::Graphs; a task says which
// it can take and what of them is run. docs/tasks.md shows how to add one.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"
#include "metrics/scores.h"
#include "models/zoo.h"
#include "schema/schema.h"
#include "tasks/details.h"
#include "tasks/nvinfer.h"
#include "tasks/prediction.h"
#include "tasks/signature.h"

namespace octet::tao {
class Message;
}

namespace octet::tasks {

// One output of a network for one batch: row-major float32, borrowed.
struct OutputView {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const float> values;
  // What the values are where they are scores of classes: an engine keeps the Softmax that executed_graph() leaves out.
  metrics::ScoreKind scores = metrics::ScoreKind::kLogits;
};
using Outputs = std::vector<OutputView>;  // in the order of the executed graph's outputs

using Metrics = std::map<std::string, double>;

// Measures one pass over annotated images.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // UserError, naming the image, for annotations that the network cannot learn.
  virtual void add(const Outputs& outputs, const data::Batch& batch) = 0;
  // Adds what an evaluator of the same task saw of other images of the dataset. In whatever way and order the images
  // were divided: metrics and details are, to the last bit, those of one evaluator that saw them in the dataset's
  // order.
  virtual void merge(const Evaluator& other) = 0;
  virtual Metrics result() const = 0;
  // What lies behind the metrics. May take a while; asked once, in the end.
  virtual Details details() const { return {}; }
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::unique_ptr<Task> clone() const = 0;

  // The options of the task: its section of an experiment, which has the task's name.
  virtual void describe(schema::Section& section) = 0;
  // Those of them that decode() needs, under the same keys: what the file of a network carries (octet.decoder), so that
  // it can be run without its experiment.
  virtual void describe_decoder(schema::Section& /*section*/) {}
  // Puts those that cannot change what a training gives to their defaults.
  virtual void forget_incidentals() {}
  // What the specifications of NVIDIA TAO's network of this name say, or nullptr where there is none.
  virtual const tao::Message* tao_specification() const { return nullptr; }
  // The same of the file that `inference` of that network takes, where it is another one.
  virtual const tao::Message* tao_inference_specification() const { return nullptr; }
  // The names of the classes in the order of the labels, told before anything is learned, decoded or measured: options
  // may be given by class. Empty where neither model nor images name them. UserError (exit 2), with the nearest, for an
  // option of a class that there is not.
  virtual void name_classes(const std::vector<std::string>& /*names*/) {}

  // For a file that does not say its task: whether networks of this task alone have such outputs. The options that
  // decode() needs are then those of such a network.
  virtual bool recognize(const Signature& /*network*/) { return false; }

  // The network that a training starts from.
  virtual ir::Graph build(const models::ModelOptions& options) const = 0;
  // UserError (exit 2) for a network that is none of this task, or has another number of classes (0: any).
  virtual void check(const Signature& network, int64_t classes) const = 0;
  // How many classes the network tells apart; -1 where it leaves that open. Requires a network that check() takes.
  virtual int64_t classes(const Signature& network) const = 0;
  // What is trained and evaluated in the place of `network`: images in [N, C, H, W] to the outputs that the evaluator
  // and the loss take; over the same constants by name.
  virtual ir::Graph executed_graph(const ir::Graph& network) const = 0;

  // What the outputs say of each image of the batch.
  virtual std::vector<Prediction> decode(const Outputs& outputs, const data::Batch& batch) const = 0;
  // How DeepStream reads these outputs. By default it hands them on as they are, to a program's own reader.
  virtual NvinferReading nvinfer(const Signature& network) const;
  virtual std::unique_ptr<Evaluator> evaluator() const = 0;
  // All of Evaluator::result(), in the order in which people read them; models are compared by the first.
  virtual std::vector<MetricInfo> metrics() const = 0;

  // Whether the nodes that make the outputs stay in floating point where the user does not say (quant.heads).
  virtual bool float_heads() const { return false; }
};

}  // namespace octet::tasks
