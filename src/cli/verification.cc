#include "cli/verification.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "ir/infer.h"
#include "metrics/top_k.h"
#include "numerics/quantize.h"
#include "tasks/graph_runner.h"

namespace octet::cli {
namespace {

// The graph cut at its activation quantisers: what each quantiser gives is an input ("forced"), what it takes an output.
struct CutGraph {
  ir::Graph graph;
  struct Cut {
    std::string tensor;  // output of the quantiser, as the engine calls it
    std::string source;  // its input
    numerics::QuantParams params;
    bool of_image = false;  // it quantises the network's input
  };
  std::vector<Cut> cuts;  // graph inputs 1 ..., graph outputs 1 ... (without those of the image)
};

CutGraph cut_at_quantisers(const ir::Graph& whole, const std::map<std::string, engine::TensorDump>& dumped) {
  CutGraph out{whole.clone(), {}};
  ir::Graph& g = out.graph;
  std::vector<ir::Node*> quantisers;
  for (const auto& node : g.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize && !node->input(0)->is_constant() && dumped.count(node->output()->name) &&
        dumped.at(node->output()->name).is_codes)
      quantisers.push_back(node.get());
  for (ir::Node* q : quantisers) {
    CutGraph::Cut cut;
    cut.tensor = q->output()->name;
    cut.source = q->input(0)->name;
    cut.params = {q->input(1)->constant->to_floats().at(0),
                  static_cast<int32_t>(q->input(2)->constant->to_ints().at(0)),
                  static_cast<int32_t>(q->get_int("qmin")), static_cast<int32_t>(q->get_int("qmax"))};
    cut.of_image = q->input(0) == g.inputs()[0];
    ir::Value* forced = g.add_input(g.unique_name("forced/" + cut.tensor), q->output()->type);
    ir::Value* source = q->input(0);
    g.replace_uses(q->output(), forced);
    if (!cut.of_image) g.add_output(source);
    out.cuts.push_back(std::move(cut));
  }
  g.remove_dead();
  ir::infer_shapes(g);
  return out;
}

class Verifier {
 public:
  Verifier(const ir::Graph& graph, engine::Executor& engine, const VerifyOptions& options)
      : graph_(graph), engine_(engine), options_(options), whole_(graph) {
    const engine::Plan& plan = engine.plan();
    if (plan.inputs.size() != 1 || plan.outputs.size() != 1 || graph.inputs().size() != 1 || graph.outputs().size() != 1)
      fail_usage("verify takes networks with one input and one output");
    input_ = &plan.buffers[static_cast<size_t>(plan.inputs[0])];
    output_ = &plan.buffers[static_cast<size_t>(plan.outputs[0])];
    images_.resize(static_cast<size_t>(input_->elements()));
    scores_.resize(static_cast<size_t>(output_->elements()));
  }

  void add(const data::Batch& batch) {
    const std::vector<int64_t>& shape = input_->shape;
    if (shape.size() != 4 || batch.channels != shape[1] || batch.height != shape[2] || batch.width != shape[3])
      fail("the images are ", batch.channels, "x", batch.height, "x", batch.width, ", the engine takes ",
           ir::shape_string(shape));
    std::fill(std::copy_n(batch.images.data(), batch.images.size(), images_.begin()), images_.end(), 0.0f);
    const float* in = images_.data();
    float* out = scores_.data();
    engine_.run(&in, &out);
    const tasks::FloatArray reference = whole_.run({{shape, images_}}).at(0);
    const auto classes = static_cast<size_t>(output_->shape.at(1));
    if (reference.values.size() != scores_.size())
      fail("the model has ", reference.values.size(), " outputs, the engine ", scores_.size(),
           "; was it compiled from this model?");
    int64_t mismatched = 0;
    const size_t first = result.mismatches.size();
    for (size_t i = 0; i < static_cast<size_t>(batch.size); i++) {
      const std::span<const float> expected(reference.values.data() + i * classes, classes);
      const std::span<const float> actual(scores_.data() + i * classes, classes);
      const std::vector<int> best = metrics::top_k(expected, 2);
      const int predicted = metrics::top_1(actual);
      for (size_t c = 0; c < classes; c++)
        result.largest_score_difference =
            std::max(result.largest_score_difference, std::abs(static_cast<double>(expected[c]) - actual[c]));
      result.images++;
      result.agree += predicted == best[0];
      if (batch.labels[i] >= 0) {
        result.labelled++;
        result.graph_hits += best[0] == batch.labels[i];
        result.engine_hits += predicted == batch.labels[i];
      }
      if (predicted == best[0]) continue;
      mismatched++;
      const double margin = best.size() > 1 ? static_cast<double>(expected[static_cast<size_t>(best[0])]) -
                                                  expected[static_cast<size_t>(best[1])]
                                            : 0;
      result.mismatches.push_back({batch.indices[i], best[0], predicted, margin, 0});
    }
    if (result.tensor_images < options_.tensor_images || mismatched > 0) {
      const int64_t different = compare_tensors();
      for (size_t i = first; i < result.mismatches.size(); i++) result.mismatches[i].different_codes = different;
      result.tensor_images += batch.size;
    }
  }

  Verification result;

 private:
  // Number of codes that differ in this batch.
  int64_t compare_tensors() {
    const float* in = images_.data();
    float* out = scores_.data();
    std::map<std::string, engine::TensorDump> dumped;
    for (engine::TensorDump& d : engine_.run_and_dump(&in, &out))
      if (d.is_codes || !dumped.count(d.name)) dumped[d.name] = std::move(d);
    if (!cut_) {
      cut_ = std::make_unique<CutGraph>(cut_at_quantisers(graph_, dumped));
      cut_runner_ = std::make_unique<tasks::GraphRunner>(cut_->graph);
      for (const CutGraph::Cut& cut : cut_->cuts) result.tensors.push_back({cut.tensor, 0, 0, 0, 0, 0});
    }
    std::vector<std::vector<float>> forced;
    std::vector<tasks::FloatView> inputs = {{input_->shape, images_}};
    for (const CutGraph::Cut& cut : cut_->cuts) {
      const engine::TensorDump& d = dumped.at(cut.tensor);
      std::vector<float>& values = forced.emplace_back(d.codes.size());
      for (size_t i = 0; i < values.size(); i++) values[i] = numerics::dequantize(d.codes[i], cut.params);
      inputs.push_back({d.shape, forced.back()});
    }
    for (size_t i = 0; i < forced.size(); i++) inputs[i + 1].values = forced[i];
    const std::vector<tasks::FloatArray> computed = cut_runner_->run(inputs);
    int64_t different = 0;
    size_t next = 1;  // output 0: the scores
    for (size_t i = 0; i < cut_->cuts.size(); i++) {
      const CutGraph::Cut& cut = cut_->cuts[i];
      const std::span<const float> source = cut.of_image ? std::span<const float>(images_) : computed.at(next++).values;
      different += compare(source, dumped.at(cut.tensor).codes, cut.params, result.tensors[i]);
    }
    return different;
  }

  int64_t compare(std::span<const float> source, const std::vector<int32_t>& codes, const numerics::QuantParams& params,
                  TensorCheck& check) const {
    if (source.size() != codes.size())
      fail("tensor '", check.tensor, "' has ", source.size(), " elements in the graph and ", codes.size(),
           " in the engine; was it compiled from this model?");
    int64_t different = 0;
    for (size_t i = 0; i < codes.size(); i++) {
      const int32_t expected = numerics::quantize(source[i], params);
      check.elements++;
      if (expected == codes[i]) continue;
      different++;
      const int64_t step = std::abs(static_cast<int64_t>(expected) - codes[i]);
      check.largest_step = std::max(check.largest_step, step);
      const double position = static_cast<double>(source[i]) / params.scale + params.zero_point;
      const double border = (static_cast<double>(expected) + codes[i]) / 2;
      if (step == 1 && std::abs(position - border) <= options_.border) check.ties++;
      else check.violations++;
    }
    check.different += different;
    return different;
  }

  const ir::Graph& graph_;
  engine::Executor& engine_;
  const VerifyOptions& options_;
  tasks::GraphRunner whole_;
  std::unique_ptr<CutGraph> cut_;
  std::unique_ptr<tasks::GraphRunner> cut_runner_;
  const engine::Buffer* input_;
  const engine::Buffer* output_;
  std::vector<float> images_, scores_;
};

}  // namespace

int64_t Verification::violations() const {
  int64_t sum = 0;
  for (const TensorCheck& t : tensors) sum += t.violations;
  return sum;
}

Verification verify_engine(const ir::Graph& graph, engine::Executor& engine, data::Loader& loader,
                           const VerifyOptions& options) {
  Verifier verifier(graph, engine, options);
  loader.start_epoch(0);
  while (std::optional<data::Batch> batch = loader.next()) {
    verifier.add(*batch);
    if (options.progress) options.progress(verifier.result.images);
  }
  if (verifier.result.images == 0) fail("there is no image to verify with");
  return std::move(verifier.result);
}

}  // namespace octet::cli
