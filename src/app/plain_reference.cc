#include "app/plain_reference.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/cpu_limits.h"
#include "base/error.h"
#include "base/parallel.h"
#include "ir/evaluate.h"
#include "ir/infer.h"

namespace octet::app {
namespace {

using ir::Graph;
using ir::Node;
using ir::Tensor;
using ir::Value;

Tensor in_float64(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_floats();
  return Tensor::of<double>(tensor.shape(), std::vector<double>(values.begin(), values.end()));
}

std::vector<Tensor> evaluated(const Node& node, const std::vector<const Tensor*>& inputs) {
  ir::MemoryBudget budget;
  auto made = ir::evaluate(node, inputs, budget);
  require(made.has_value(), "node '", node.name, "' (", node.info().name, ") has no evaluation without LibTorch; ",
          "verify with the program that has it (--reference libtorch)");
  return std::move(*made);
}

// Quantizers of weights round as the trainer does: in float32, whatever the rest is computed in.
void fold_constant_quantizers(Graph& graph) {
  std::vector<Node*> folded;
  for (const auto& node : graph.nodes()) {
    const auto fixed = [](const Value* v) { return v == nullptr || v->is_constant(); };
    if (node->kind != ir::OpKind::kFakeQuantize || !std::all_of(node->inputs.begin(), node->inputs.end(), fixed))
      continue;
    std::vector<const Tensor*> inputs;
    for (const Value* v : node->inputs) inputs.push_back(v ? &*v->constant : nullptr);
    Value* constant =
        graph.add_constant(graph.unique_name(node->output()->name + "/folded"), evaluated(*node, inputs).at(0));
    graph.replace_uses(node->output(), constant);
    folded.push_back(node.get());
  }
  for (Node* node : folded) graph.erase(node);
}

// Whether it sums products.
bool sums(const Node& node) {
  return node.kind == ir::OpKind::kConv || node.kind == ir::OpKind::kConvTranspose || node.kind == ir::OpKind::kGemm ||
         node.kind == ir::OpKind::kMatMul;
}

Tensor absolute(const Tensor& tensor) {
  std::vector<float> values = tensor.to_floats();
  for (float& v : values) v = std::abs(v);
  return Tensor::of<float>(tensor.shape(), values);
}

// The sums of products as float32 may give them in another order: off by half a unit of the last place of the sum of
// the absolute products, to either side. The error of a sum of K products is at most K of these units, and for one in
// blocks, as every fast product sums, about one.
Tensor summed_otherwise(const Node& node, const std::vector<const Tensor*>& inputs, const Tensor& exact) {
  std::vector<Tensor> sizes;
  std::vector<const Tensor*> absolutes;
  sizes.reserve(inputs.size());
  for (const Tensor* input : inputs) absolutes.push_back(input ? &sizes.emplace_back(absolute(*input)) : nullptr);
  const std::vector<float> size = evaluated(node, absolutes).at(0).to_floats();
  std::vector<float> values = exact.to_floats();
  constexpr double kUnit = std::numeric_limits<float>::epsilon() / 2;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(values[i] + (i % 2 == 0 ? kUnit : -kUnit) * size[i]);
  return Tensor::of<float>(exact.shape(), values);
}

class PlainRun : public GraphRun {
 public:
  enum class Numbers { kFloat32, kFloat64 };

  // The nodes before the first `scores` outputs are summed otherwise.
  PlainRun(const Graph& graph, Numbers numbers, size_t scores, int threads)
      : graph_(graph.clone()), numbers_(numbers), threads_(threads) {
    fold_constant_quantizers(graph_);
    graph_.remove_dead();
    if (numbers_ == Numbers::kFloat64)
      for (Value* v : graph_.constants())
        if (v->constant->data_type() == ir::DataType::kFloat32) graph_.set_constant(v, in_float64(*v->constant));
    for (const auto& node : graph_.nodes()) order_.push_back(node.get());
    for (size_t i = 0; i < scores; ++i) mark(graph_.outputs().at(i));
  }

  std::vector<FloatArray> run(const std::vector<FloatView>& inputs) override {
    OCTET_CHECK(inputs.size() == graph_.inputs().size());
    std::unordered_map<const Value*, Tensor> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor tensor = Tensor::of<float>(inputs[i].shape, inputs[i].values);
      values[graph_.inputs()[i]] = numbers_ == Numbers::kFloat64 ? in_float64(tensor) : tensor;
    }
    compute(values);
    std::vector<FloatArray> out;
    for (const Value* v : graph_.outputs()) {
      const Tensor& tensor = tensor_of(v, values);
      out.push_back({tensor.shape(), tensor.to_floats()});
    }
    return out;
  }

 private:
  using Values = std::unordered_map<const Value*, Tensor>;

  void mark(const Value* v) {
    if (v->producer == nullptr || !before_scores_.insert(v->producer).second) return;
    for (const Value* input : v->producer->inputs)
      if (input != nullptr) mark(input);
  }
  static const Tensor& tensor_of(const Value* v, const Values& values) {
    return v->is_constant() ? *v->constant : values.at(v);
  }

  std::vector<Tensor> results_of(const Node& node, const Values& values) const {
    std::vector<const Tensor*> inputs;
    for (const Value* v : node.inputs) inputs.push_back(v ? &tensor_of(v, values) : nullptr);
    std::vector<Tensor> results = evaluated(node, inputs);
    if (numbers_ == Numbers::kFloat32 && sums(node) && before_scores_.count(&node) > 0)
      results[0] = summed_otherwise(node, inputs, results[0]);
    return results;
  }

  // A model that is cut at its codes has many pieces, whose first nodes need nothing but the inputs: in rounds, all
  // nodes at once whose inputs are there.
  void compute(Values& values) const {
    std::vector<const Node*> waiting(order_.begin(), order_.end());
    while (!waiting.empty()) {
      std::vector<const Node*> ready, later;
      for (const Node* node : waiting) {
        const bool complete = std::all_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) {
          return v == nullptr || v->is_constant() || values.count(v) > 0;
        });
        (complete ? ready : later).push_back(node);
      }
      std::vector<std::vector<Tensor>> made(ready.size());
      std::vector<std::exception_ptr> failed(ready.size());
      parallel_for(std::ssize(ready), threads_, [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        try {
          made[at] = results_of(*ready[at], values);
        } catch (...) {
          failed[at] = std::current_exception();
        }
      });
      for (const std::exception_ptr& each : failed)
        if (each) std::rethrow_exception(each);
      for (size_t i = 0; i < ready.size(); ++i)
        for (size_t o = 0; o < made[i].size(); ++o)
          if (const Value* output = ready[i]->output(o)) values[output] = std::move(made[i][o]);
      waiting = std::move(later);
    }
  }

  Graph graph_;
  Numbers numbers_;
  int threads_;
  std::vector<const Node*> order_;
  std::set<const Node*> before_scores_;
};

}  // namespace

PlainReference::PlainReference(int threads) : threads_(threads > 0 ? threads : available_cpus()) {}

std::unique_ptr<GraphRun> PlainReference::whole(const Graph&) const {
  return nullptr;
}

std::unique_ptr<GraphRun> PlainReference::pieces(const Graph& graph, size_t scores) const {
  return std::make_unique<PlainRun>(graph, PlainRun::Numbers::kFloat32, scores, threads_);
}

std::unique_ptr<GraphRun> PlainReference::exact(const Graph& graph) const {
  return std::make_unique<PlainRun>(graph, PlainRun::Numbers::kFloat64, 0, threads_);
}

}  // namespace octet::app
