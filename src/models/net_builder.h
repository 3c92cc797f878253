// Layers in the words of training frameworks, added to an ir::Graph as ONNX nodes with initial weights. A layer named
// "a" makes the node "a" with output "a" and parameters "a.weight", "a.bias".
#pragma once
#include <optional>
#include <string>

#include "models/zoo.h"

namespace octet::models {

struct ConvSpec {
  int64_t out = 0;     // filters
  int64_t kernel = 1;  // square
  int64_t stride = 1;
  int64_t groups = 1;
  bool bias = false;  // starts at 0
};

// How a linear layer starts.
struct LinearInit {
  std::optional<double> deviation;      // normal, bias 0
  std::optional<double> uniform_bound;  // uniform, bias 0
  // Neither: weight and bias uniform within 1 / sqrt(inputs), PyTorch's default.
};

class NetBuilder {
 public:
  explicit NetBuilder(const ModelOptions& options);

  ir::Value* input() const { return input_; }
  const ModelOptions& options() const { return options_; }
  static int64_t channels(const ir::Value* x) { return (*x->type.shape)[1]; }

  // Padding (kernel - 1) / 2 on every side. Weights: Kaiming normal, fan out, gain of ReLU.
  ir::Value* conv(ir::Value* x, const std::string& name, const ConvSpec& spec);
  ir::Value* batch_norm(ir::Value* x, const std::string& name, float gamma = 1);
  ir::Value* relu(ir::Value* x, const std::string& name);
  ir::Value* relu6(ir::Value* x, const std::string& name);
  // x * sigmoid(x): the nodes name.sigmoid and name.
  ir::Value* silu(ir::Value* x, const std::string& name);
  ir::Value* sigmoid(ir::Value* x, const std::string& name);
  ir::Value* add(ir::Value* a, ir::Value* b, const std::string& name);
  ir::Value* multiply(ir::Value* a, ir::Value* b, const std::string& name);
  ir::Value* max_pool(ir::Value* x, const std::string& name, int64_t kernel, int64_t stride, int64_t pad);
  ir::Value* global_average(ir::Value* x, const std::string& name);
  ir::Value* flatten(ir::Value* x, const std::string& name);
  // The options' probability, or `published` when they leave it open.
  ir::Value* dropout(ir::Value* x, const std::string& name, double published);
  // `output_name` empty: that of the layer.
  ir::Value* linear(ir::Value* x, const std::string& name, int64_t out, const LinearInit& init,
                    const std::string& output_name = "");
  // The classifier's last layer: linear, one output "logits" a class.
  ir::Value* classes(ir::Value* x, const std::string& name, const LinearInit& init) {
    return linear(x, name, options_.num_classes, init, "logits");
  }
  // Hands the graph out; its values stay where they are. Nothing may be added after it.
  ir::Graph take() { return std::move(graph_); }

 private:
  ir::Value* parameter(const std::string& name, ir::Shape shape, const std::vector<float>& values);
  ir::Value* filled(const std::string& name, int64_t count, float value, bool trainable);
  ir::Value* shared_scalar(const std::string& name, float value);

  ModelOptions options_;
  ir::Graph graph_;
  ir::Value* input_;
};

}  // namespace octet::models
