// A network that can be run, whatever it is stored as: an ONNX file (float or fake-quantized; by LibTorch, or by the
// engine in builds without it) or an engine file.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/model_file.h"
#include "tasks/evaluate.h"

namespace octet::app {

class Model : public tasks::Runner {
 public:
  // Of the file, not of what is run in its place.
  virtual const tasks::Signature& signature() const = 0;
  // C, H, W of the input; -1 where the file leaves it open.
  virtual std::vector<int64_t> input_shape() const = 0;
  // Images at a time, where that is fixed; 0: any number.
  virtual int64_t batch_size() const = 0;
  virtual std::string description() const = 0;  // "engine, avx512_vnni, 2 threads"
  // In the order of the scores; empty where the file does not name them.
  const std::vector<std::string>& class_names() const { return class_names_; }

 protected:
  // UserError (exit 2) when they are more than the `classes` of the network.
  void read_class_names(const ModelFile& file, int64_t classes);

 private:
  std::vector<std::string> class_names_;
};

struct RunOptions {
  int64_t threads = 0;  // 0: as many as CPUs
  std::string isa;      // of engines; empty: the best
  // C, H, W that the engine is made for where an ONNX file leaves them open; 0: it must not.
  std::array<int64_t, 3> input = {};
};

// Runs an engine file, or the engine that is made of an ONNX file on the spot. UserError (exit 2) for a network that is
// none of the task.
std::unique_ptr<Model> open_engine_model(const ModelFile& file, const tasks::Task& task, const RunOptions& options);
// The same for a network of images whose outputs may be anything that has a row for each image.
std::unique_ptr<Model> open_engine_model(const ModelFile& file, const RunOptions& options);

// What an output of the plan is where it holds scores of classes: whether a Softmax over them made it.
metrics::ScoreKind score_kind_of(const engine::Plan& plan, size_t output);

}  // namespace octet::app
