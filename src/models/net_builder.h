// Layers in the words of training frameworks, added to an ir::Graph as ONNX nodes with initial weights. A layer named
// "a" makes the node "a" with output "a" and parameters "a.weight", "a.bias".
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/zoo.h"

namespace octet::models {

struct ConvSpec {
  int64_t out = 0;     // filters
  int64_t kernel = 1;  // square, or its height
  int64_t width = 0;   // of the kernel; 0: square
  int64_t stride = 1;
  int64_t groups = 1;
  bool bias = false;  // starts at 0; there is one anyway where the options leave normalization out
  // kSame: (side of the kernel - 1) / 2 on every side. kTensorFlow: for a stride of 2 on an even size one less before
  // it. kNone.
  enum class Padding { kSame, kTensorFlow, kNone } padding = Padding::kSame;
  std::optional<double> deviation = {};  // of the initial weights; absent: Kaiming normal, fan out, gain of ReLU
};

struct PoolSpec {
  int64_t kernel = 2, stride = 2, pad = 0;
  bool ceil = false;  // a last window that is not whole counts
};

// How a linear layer starts.
struct LinearInit {
  std::optional<double> deviation;      // normal, bias 0
  std::optional<double> uniform_bound;  // uniform, bias 0
  // Neither: weight and bias uniform within 1 / sqrt(inputs), PyTorch's default.
  bool bias = true;
};

// What a network was published with.
struct Published {
  bool batch_norm = true;
  float epsilon = 1e-5f;  // of its normalization; TAO's layout has 1e-3
  float momentum = 0.9f;  // that the running statistics keep; TAO's layout has 0.99
};

class NetBuilder {
 public:
  NetBuilder(const ModelOptions& options, const Published& published, bool backbone);

  ir::Value* input() const { return input_; }
  const ModelOptions& options() const { return options_; }
  bool tao() const { return options_.layout == Layout::kTao; }
  bool backbone() const { return backbone_; }  // for a head of another task; else for the classifier
  bool uses_batch_norm() const { return options_.use_batch_norm.value_or(published_.batch_norm); }
  float epsilon() const {
    if (options_.batch_norm_epsilon > 0) return static_cast<float>(options_.batch_norm_epsilon);
    return tao() ? 1e-3f : published_.epsilon;
  }
  bool uses_pooling() const { return options_.use_pooling.value_or(!tao()); }
  // What is added from here on belongs to this block of freeze_blocks; -1: to none.
  void begin_block(int64_t number) { block_ = number; }
  const std::map<std::string, int64_t>& blocks() const { return blocks_; }  // of the nodes by name
  static int64_t channels(const ir::Value* x) { return (*x->type.shape)[1]; }

  ir::Value* conv(ir::Value* x, const std::string& name, const ConvSpec& spec);
  // x itself where the options leave normalization out.
  ir::Value* batch_norm(ir::Value* x, const std::string& name, float gamma = 1);
  // The options' activation, or `published` when they leave it open. SiLU is two nodes, name.sigmoid and name; the
  // slope of LeakyRelu is 0.1, as DarkNet has it.
  ir::Value* activation(ir::Value* x, const std::string& name, Activation published);
  ir::Value* relu(ir::Value* x, const std::string& name) { return activation(x, name, Activation::kRelu); }
  ir::Value* sigmoid(ir::Value* x, const std::string& name);
  ir::Value* hard_sigmoid(ir::Value* x, const std::string& name);  // clamp(x / 6 + 1/2, 0, 1)
  ir::Value* add(ir::Value* a, ir::Value* b, const std::string& name);
  ir::Value* multiply(ir::Value* a, ir::Value* b, const std::string& name);
  ir::Value* concat(std::vector<ir::Value*> parts, const std::string& name, int64_t axis = 1);
  ir::Value* max_pool(ir::Value* x, const std::string& name, const PoolSpec& spec);
  ir::Value* average_pool(ir::Value* x, const std::string& name, const PoolSpec& spec);  // border zeros count
  ir::Value* global_average(ir::Value* x, const std::string& name);
  // `output_name` empty: that of the layer.
  ir::Value* flatten(ir::Value* x, const std::string& name, const std::string& output_name = "");
  // Of the last axis; timm's epsilon unless another is given.
  ir::Value* layer_norm(ir::Value* x, const std::string& name, float epsilon = 1e-6f);
  ir::Value* matmul(ir::Value* a, ir::Value* b, const std::string& name);
  ir::Value* softmax(ir::Value* x, const std::string& name);  // of the last axis
  ir::Value* scaled(ir::Value* x, const std::string& name, float factor);
  // The shape as Reshape takes it: 0 copies a dimension, -1 is what is left.
  ir::Value* reshape(ir::Value* x, const std::string& name, const std::vector<int64_t>& shape);
  ir::Value* transpose(ir::Value* x, const std::string& name, const std::vector<int64_t>& order);
  // Along axis 1: the parts with these sizes; `count` zeros in front.
  std::vector<ir::Value*> split(ir::Value* x, const std::string& name, const std::vector<int64_t>& sizes);
  ir::Value* pad_front(ir::Value* x, const std::string& name, int64_t count);
  // Elements [begin, end).
  ir::Value* slice(ir::Value* x, const std::string& name, int64_t begin, int64_t end, int64_t axis = 1);
  // So many zeros behind each axis; x itself where all are 0.
  ir::Value* pad_end(ir::Value* x, const std::string& name, const std::vector<int64_t>& counts);
  // `count` zeros on every side of the image.
  ir::Value* pad_border(ir::Value* x, const std::string& name, int64_t count);
  // A parameter that is data of its own, drawn from a normal distribution.
  ir::Value* embedding(const std::string& name, ir::Shape shape, double deviation);
  // A parameter of which every number starts at `value`.
  ir::Value* constant_parameter(const std::string& name, ir::Shape shape, float value);
  // Numbers that are not trained.
  ir::Value* fixed(const std::string& name, ir::Shape shape, const std::vector<float>& values);
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
  // Random numbers for the parameter of this name, or zeros (ModelOptions::draw_weights).
  std::vector<float> normal(const std::string& name, int64_t count, double deviation) const;
  std::vector<float> uniform(const std::string& name, int64_t count, double bound) const;
  ir::Value* ints(const std::string& name, const std::vector<int64_t>& values);
  ir::Value* shared_scalar(const std::string& name, float value);
  ir::Value* add_node(ir::OpKind kind, const std::string& name, std::vector<ir::Value*> inputs,
                      ir::Attributes attributes = {}, const std::string& output_name = "");

  ModelOptions options_;
  Published published_;
  bool backbone_;
  int64_t block_ = -1;
  std::map<std::string, int64_t> blocks_;
  ir::Graph graph_;
  ir::Value* input_;
};

}  // namespace octet::models
