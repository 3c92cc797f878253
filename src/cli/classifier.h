// A classifier that can be run, whatever it is stored as: an ONNX file (float or fake-quantized; by LibTorch, or by the
// engine in builds without it) or an engine file.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "metrics/scores.h"
#include "metrics/top_k.h"

namespace octet::cli {

class Classifier {
 public:
  virtual ~Classifier() = default;
  // Scores of `batch.size` images, [image][class].
  virtual std::vector<float> scores(const data::Batch& batch) = 0;
  virtual int64_t classes() const = 0;
  virtual metrics::ScoreKind score_kind() const = 0;
  // Images at a time, where that is fixed; 0: any number.
  virtual int64_t batch_size() const { return 0; }
  virtual std::string description() const = 0;  // "engine, avx512_vnni, 2 threads"
  // C, H, W of the input; -1 where the file leaves it open.
  virtual std::vector<int64_t> input_shape() const = 0;
  // In the order of the scores; empty where the file does not name them.
  const std::vector<std::string>& class_names() const { return class_names_; }

 protected:
  // From the metadata of `file`. UserError (exit 2) when they are more than the scores.
  void read_class_names(const std::map<std::string, std::string>& metadata, const std::string& file);

 private:
  std::vector<std::string> class_names_;
};

struct ClassifierOptions {
  int64_t threads = 0;  // 0: as many as CPUs
  std::string isa;      // of engines; empty: the best
};

// By the ending: .onnx or .octet. UserError for anything else.
std::unique_ptr<Classifier> open_classifier(const std::string& path, const ClassifierOptions& options);

// In builds with LibTorch: an executor of the ONNX file.
std::unique_ptr<Classifier> open_graph_classifier(const std::string& path, const ClassifierOptions& options);

struct Classification {
  metrics::TopKAccumulator accuracy;
  double loss = 0;               // mean cross-entropy; 0 without labels
  std::vector<int> predictions;  // top-1 of every image
  std::vector<float> scores;     // [image][class]
  std::vector<int64_t> indices;  // of the images in the dataset
  double seconds = 0;
};

// Runs one epoch of `loader` (in order, nothing dropped). Images without labels are not counted in `accuracy`.
Classification classify(Classifier& classifier, data::Loader& loader, int top_k, const std::string& label);

}  // namespace octet::cli
