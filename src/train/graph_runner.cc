#include "train/graph_runner.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/query.h"
#include "ir/summary.h"
#include "passes/raise_quantizers.h"
#include "passes/remove_identity.h"
#include "train/executor.h"
#include "train/torch_runtime.h"

namespace octet::train {
namespace {

// Threads that meet after every node gain nothing where a node takes them a tenth of a millisecond, and where another
// process has one of the CPUs they wait for each other three times as long as they compute.
constexpr double kMacsWorthThreads = 10e6;

// Mean multiply-accumulates of the nodes that have some, for one image (or for the batch that the graph is made for);
// 0 where none has, or where a size is not known.
double macs_of_node(const ir::Graph& graph) {
  const ir::GraphSummary summary = ir::summarize(graph);
  const auto counted = std::count_if(summary.nodes.begin(), summary.nodes.end(),
                                     [](const ir::NodeSummary& node) { return node.macs.value_or(0) > 0; });
  return counted > 0 && summary.macs ? static_cast<double>(*summary.macs) / static_cast<double>(counted) : 0;
}

bool has_open_batch(const ir::Graph& graph) {
  const ir::Value* input = graph.inputs().empty() ? nullptr : graph.inputs()[0];
  return input && input->type.shape && !input->type.shape->empty() && (*input->type.shape)[0] == ir::kDynamic;
}

// The weights as they are behind their quantizers: they are the same in every run, and quantizing the weights of a
// ResNet-18 takes longer than the rest of it on one small image.
ir::Graph with_quantized_constants(const ir::Graph& graph) {
  ir::Graph out = graph.clone();
  for (ir::Node* node : ir::node_list(out)) {
    const bool constant = std::all_of(node->inputs.begin(), node->inputs.end(),
                                      [](const ir::Value* in) { return in != nullptr && in->is_constant(); });
    if (!ir::is_quantizer(node) || !constant || out.is_output(node->output())) continue;
    ir::MemoryBudget budget;
    std::vector<const ir::Tensor*> inputs;
    for (const ir::Value* in : node->inputs) inputs.push_back(&*in->constant);
    auto values = ir::evaluate(*node, inputs, budget);
    if (!values) continue;
    const std::string name = out.unique_name(node->output()->name + "/values");
    out.replace_uses(node->output(), out.add_constant(name, std::move((*values)[0])));
  }
  out.remove_dead();
  return out;
}

// Quantizers stand behind the sums that they round, with nothing between that does nothing in evaluation.
ir::Graph with_raised_quantizers(const ir::Graph& graph) {
  ir::Graph out = graph.clone();
  passes::remove_identity(out);
  passes::raise_quantizers(out);
  return out;
}

// LibTorch has one thread while this lives, if it is told to.
class OneThread {
 public:
  explicit OneThread(bool wanted) : before_(wanted ? torch_threads() : 0) {
    if (before_ > 1) set_torch_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) set_torch_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace

struct GraphRunner::State {
  Executor executor;
  double macs_of_node;  // 0: not known
  bool open_batch;
};

GraphRunner::GraphRunner(const ir::Graph& graph, const std::string& device, Arithmetic arithmetic) {
  initialize_torch();
  const bool integers = arithmetic == Arithmetic::kInteger && device == "cpu";
  const auto precision = arithmetic == Arithmetic::kDouble ? Precision::kFloat64 : Precision::kFloat32;
  state_ =
      std::make_unique<State>(State{Executor(integers ? with_raised_quantizers(graph) : with_quantized_constants(graph),
                                             {.device = device, .precision = precision, .integer_sums = integers}),
                                    macs_of_node(graph), has_open_batch(graph)});
}

GraphRunner::~GraphRunner() = default;

const ir::Graph& GraphRunner::graph() const {
  return state_->executor.graph();
}

std::vector<FloatArray> GraphRunner::run(const std::vector<FloatView>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const FloatView& view : inputs) {
    tensors.push_back(at::from_blob(const_cast<float*>(view.values.data()), view.shape, at::kFloat));
    OCTET_CHECK(tensors.back().numel() == static_cast<int64_t>(view.values.size()));
  }
  const int64_t images = state_->open_batch && !inputs.empty() && !inputs[0].shape.empty() ? inputs[0].shape[0] : 1;
  const double work = state_->macs_of_node * static_cast<double>(images);
  const OneThread one(work > 0 && work < kMacsWorthThreads);
  std::vector<FloatArray> out;
  for (const at::Tensor& tensor : state_->executor.forward(std::move(tensors), Mode::kEval)) {
    const at::Tensor plain = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
    const float* first = plain.const_data_ptr<float>();
    out.push_back({plain.sizes().vec(), {first, first + plain.numel()}});
  }
  return out;
}

}  // namespace octet::train
