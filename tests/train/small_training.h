// A small real problem for tests of training: bright quadrants of noisy pictures.
#pragma once
#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "data/memory_dataset.h"
#include "ir/infer.h"
#include "train/loss.h"
#include "train/trainer.h"

namespace octet::train::testing {

// Four classes: which quadrant of an 8x8 picture is bright.
inline std::unique_ptr<data::Dataset> quadrants(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  data::MemoryDataset::Contents contents;
  contents.height = contents.width = 8;
  contents.channels = 1;
  contents.class_names = {"a", "b", "c", "d"};
  data::MemoryDataset::Part part;
  part.file = "quadrants";
  part.stride = 64;
  part.count = count;
  for (int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(random() % 4);
    contents.labels.push_back(label);
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 8; ++x)
        part.bytes += static_cast<char>(random() % 120 + ((y / 4) * 2 + x / 4 == label ? 100 : 0));
  }
  contents.parts.push_back(std::move(part));
  return std::make_unique<data::MemoryDataset>(std::move(contents), 0);
}

// Its pictures in their order, `size` a batch.
inline std::vector<data::Batch> batches_of(const data::Dataset& dataset, int64_t size) {
  data::Loader loader(dataset, {.batch_size = size});
  loader.start_epoch(0);
  std::vector<data::Batch> out;
  while (std::optional<data::Batch> batch = loader.next()) out.push_back(std::move(*batch));
  return out;
}

inline ir::Tensor normal_constant(ir::Shape shape, float spread, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(static_cast<size_t>(ir::element_count(shape)));
  for (float& v : values) v = normal(random);
  return ir::Tensor::of<float>(shape, values);
}

// A convolution and a product; float with batch norm, or with quantizers of the input and of the weights.
inline ir::Graph small_network(bool quantized) {
  using ir::OpKind;
  using ir::Tensor;
  ir::Graph g;
  ir::Value* x = g.add_input("input", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 1, 8, 8}});
  const auto fake_quantize = [&](ir::Value* v, const std::string& name, Tensor scale, int64_t axis, int64_t qmin) {
    const ir::Shape shape = scale.shape();
    const std::vector<int8_t> zeros(static_cast<size_t>(ir::element_count(shape)), 0);
    return g.add(OpKind::kFakeQuantize, name,
                 {v, g.add_constant(name + "/scale", std::move(scale)),
                  g.add_constant(name + "/zero_point", Tensor::of<int8_t>(shape, zeros))},
                 {{"axis", axis}, {"qmin", qmin}});
  };
  ir::Value* w = g.add_constant("conv.weight", normal_constant({8, 1, 3, 3}, 0.4f, 1), true);
  ir::Value* b = g.add_constant("conv.bias", normal_constant({8}, 0.1f, 2), true);
  if (quantized) {
    x = fake_quantize(x, "input/fake_quantize", Tensor::scalar(1.0f / 127), 1, -128);
    w = fake_quantize(w, "conv.weight/fake_quantize", Tensor::of<float>({8}, std::vector<float>(8, 0.01f)), 0, -127);
  }
  ir::Value* y = g.add(OpKind::kConv, "conv", {x, w, b},
                       {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  if (!quantized) {
    const auto ones = Tensor::of<float>({8}, std::vector<float>(8, 1.0f));
    const auto zeros = Tensor::of<float>({8}, std::vector<float>(8, 0.0f));
    y = g.add(OpKind::kBatchNormalization, "bn",
              {y, g.add_constant("bn.weight", ones, true), g.add_constant("bn.bias", zeros, true),
               g.add_constant("bn.running_mean", zeros), g.add_constant("bn.running_var", ones)});
  }
  y = g.add(OpKind::kRelu, "relu", {y});
  y = g.add(OpKind::kMaxPool, "pool", {y},
            {{"kernel_shape", std::vector<int64_t>{4, 4}}, {"strides", std::vector<int64_t>{4, 4}}});
  y = g.add(OpKind::kFlatten, "flatten", {y});
  y = g.add(OpKind::kGemm, "fc",
            {y, g.add_constant("fc.weight", normal_constant({4, 32}, 0.1f, 3), true),
             g.add_constant("fc.bias", normal_constant({4}, 0.1f, 4), true)},
            {{"transB", int64_t{1}}});
  g.add_output(y);
  ir::infer_shapes(g);
  return g;
}

// Copies of parameters and buffers, by name.
inline std::map<std::string, at::Tensor> state_of(const Executor& executor) {
  std::map<std::string, at::Tensor> out;
  for (const auto& tensors : {executor.named_parameters(), executor.named_buffers()})
    for (const auto& [name, tensor] : tensors) out[name] = tensor.detach().clone();
  return out;
}

inline std::vector<NamedParameter> parameters_of(const Executor& executor) {
  std::vector<NamedParameter> out;
  for (const auto& [name, tensor] : executor.named_parameters()) out.push_back({name, tensor});
  return out;
}

// Cross-entropy of the classes, and the share of pictures that are told right.
class QuadrantTask : public Loss {
 public:
  explicit QuadrantTask(data::Loader* validation) : validation_(validation) {}
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
    return {{"loss", at::cross_entropy_loss(outputs.at(0), labels(batch))}};
  }
  Validation measure() {
    return {.evaluate = [this](Executor& executor) { return evaluate(executor); }, .metric = "accuracy"};
  }

 private:
  std::map<std::string, double> evaluate(Executor& executor) {
    double right = 0, all = 0;
    validation_->start_epoch(0);
    while (auto batch = validation_->next()) {
      const at::Tensor x = at::from_blob(const_cast<float*>(batch->images.data()), {batch->size, 1, 8, 8});
      right += executor.forward({x}, Mode::kEval)[0].argmax(1).eq(labels(*batch)).sum().item<double>();
      all += static_cast<double>(batch->size);
    }
    return {{"accuracy", right / all}};
  }
  static at::Tensor labels(const data::Batch& batch) {
    std::vector<int64_t> labels = batch.labels();
    return at::from_blob(labels.data(), {batch.size}, at::kLong).clone();
  }
  data::Loader* validation_;
};

}  // namespace octet::train::testing
