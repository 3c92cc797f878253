#include "app/verification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "app/model.h"
#include "base/error.h"
#include "dense/program.h"
#include "engine/kernels/code_function.h"
#include "ir/infer.h"

namespace octet::app {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Where both are the same infinity, or both NaN, nothing differs.
double difference(float a, float b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(static_cast<double>(a) - b);
  return std::isnan(d) ? kUnlimited : d;
}

// Values behind one of these jump where its argument moves by the last bit.
std::set<const ir::Value*> behind_a_jump(const ir::Graph& graph) {
  std::set<const ir::Value*> jumping;
  for (const auto& node : graph.nodes())
    if (node->kind == ir::OpKind::kArgMax || node->kind == ir::OpKind::kFloor ||
        std::any_of(node->inputs.begin(), node->inputs.end(),
                    [&](const ir::Value* in) { return jumping.count(in) > 0; }))
      jumping.insert(node->outputs.begin(), node->outputs.end());
  jumping.erase(nullptr);
  return jumping;
}

class Verifier {
 public:
  Verifier(const ir::Graph& graph, std::shared_ptr<const engine::Plan> own, engine::Executor& engine,
           const data::NetworkInput& input, const Reference& reference, const tasks::Task& task, bool annotated,
           const VerifyOptions& options)
      : graph_(graph),
        own_(std::move(own)),
        engine_(engine),
        network_(input),
        reference_(reference),
        task_(task),
        options_(options) {
    const engine::Plan& plan = engine.plan();
    if (plan.inputs.size() != graph.inputs().size() || plan.outputs.size() != graph.outputs().size())
      refuse(str("the model has ", graph.inputs().size(), " inputs and ", graph.outputs().size(),
                 " outputs, the engine ", plan.inputs.size(), " and ", plan.outputs.size()));
    const auto bytes = [](const engine::Plan& p) {
      return p.program ? dense::program_bytes(*p.program) : std::string();
    };
    if (bytes(plan) != bytes(*own_)) refuse("the operations behind the engine's plan are not those of the model");
    input_ = &buffer(plan, plan.inputs[0]);
    images_.resize(static_cast<size_t>(input_->elements()));
    const std::set<const ir::Value*> jumping = behind_a_jump(graph);
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const engine::Buffer& theirs = buffer(plan, plan.outputs[i]);
      const engine::Buffer& ours = buffer(*own_, own_->outputs.at(i));
      if (theirs.shape != ours.shape)
        refuse(str("output '", ours.name, "' of the model is ", ir::shape_string(ours.shape), ", output '", theirs.name,
                   "' of the engine ", ir::shape_string(theirs.shape)));
      outputs_.emplace_back(static_cast<size_t>(theirs.elements()));
      result.scores.push_back({.output = ours.name, .discrete = jumping.count(graph.outputs()[i]) > 0});
    }
    for (std::vector<float>& output : outputs_) output_pointers_.push_back(output.data());
    if (is_of_task()) whole_ = reference.whole(graph);
    result.predicts = whole_ != nullptr;
    if (!result.predicts) return;
    for (size_t i = 0; i < plan.outputs.size(); ++i) kinds_.push_back(score_kind_of(plan, i));
    if (annotated) graph_evaluator_ = task.evaluator(), engine_evaluator_ = task.evaluator();
  }

  Verification take_result() {
    if (graph_evaluator_) {
      result.graph_metrics = graph_evaluator_->result();
      result.engine_metrics = engine_evaluator_->result();
    }
    return std::move(result);
  }

  void add(const data::Batch& batch) {
    data::require_fit(network_, batch.channels, batch.height, batch.width);
    data::arrange(batch, network_, images_);
    const float* in = images_.data();
    engine_.run(&in, output_pointers_.data());
    const size_t first = result.mismatches.size();
    if (result.predicts) compare_predictions(batch);
    result.images += batch.size;
    const bool mismatched = result.mismatches.size() > first;
    if (result.tensor_images >= options_.tensor_images && !mismatched) return;
    const int64_t different = compare_tensors();
    for (size_t i = first; i < result.mismatches.size(); ++i) result.mismatches[i].different_codes = different;
    result.tensor_images += batch.size;
  }

  // Nothing is left to do with further images.
  bool done() const { return !result.predicts && result.tensor_images >= options_.tensor_images; }

  Verification result;

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw UserError(what + "; was it compiled from this model?", ExitCode::kCheckFailed);
  }
  // Whose outputs have a row for each image, too.
  bool is_of_task() const {
    if (graph_.program) return false;
    for (const std::vector<int64_t>& shape : output_shapes())
      if (shape.empty() || shape[0] != input_->shape[0]) return false;
    try {
      task_.check(tasks::signature_of(graph_), 0);
      return true;
    } catch (const UserError&) {
      return false;  // any network can be verified
    }
  }
  std::vector<std::vector<int64_t>> output_shapes() const {
    std::vector<std::vector<int64_t>> out;
    for (int id : engine_.plan().outputs) out.push_back(buffer(engine_.plan(), id).shape);
    return out;
  }
  static const engine::Buffer& buffer(const engine::Plan& plan, int id) {
    return plan.buffers[static_cast<size_t>(id)];
  }

  tasks::Outputs outputs_of(const std::vector<std::vector<int64_t>>& shapes,
                            const std::vector<std::span<const float>>& values, int64_t images) const {
    tasks::Outputs out;
    for (size_t i = 0; i < values.size(); ++i) {
      std::vector<int64_t> shape = shapes[i];
      const size_t used = values[i].size() / static_cast<size_t>(shape[0]) * static_cast<size_t>(images);
      shape[0] = images;
      out.push_back({graph_.outputs()[i]->name, shape, values[i].first(used), kinds_[i]});
    }
    return out;
  }

  void compare_predictions(const data::Batch& batch) {
    const std::vector<FloatArray> reference = whole_->run({{input_->shape, images_}});
    std::vector<std::vector<int64_t>> shapes;
    std::vector<std::span<const float>> of_graph, of_engine;
    for (size_t i = 0; i < reference.size(); ++i) {
      OCTET_CHECK(reference[i].values.size() == outputs_[i].size());
      shapes.push_back(reference[i].shape);
      of_graph.emplace_back(reference[i].values);
      of_engine.emplace_back(outputs_[i]);
    }
    const tasks::Outputs graph = outputs_of(shapes, of_graph, batch.size),
                         engine = outputs_of(shapes, of_engine, batch.size);
    if (graph_evaluator_) graph_evaluator_->add(graph, batch), engine_evaluator_->add(engine, batch);
    const std::vector<tasks::Prediction> expected = task_.decode(graph, batch), found = task_.decode(engine, batch);
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool same = tasks::agree(expected[i], found[i]);
      result.agree += same;
      result.distance.merge(tasks::distance(expected[i], found[i]));
      if (!same)
        result.mismatches.push_back({batch.indices[i], tasks::summary(expected[i]), tasks::summary(found[i]), 0});
    }
  }

  TensorDumps dump(engine::Executor& executor) {
    const float* in = images_.data();
    return tensors_by_name(executor.run_and_dump(&in, output_pointers_.data()));
  }

  void cut(const TensorDumps& dumped) {
    engine::Executor own(own_, {.isa = engine_.isa()});
    tensors_ = find_quantized_tensors(graph_, dumped, dump(own));
    for (const QuantizedTensor& t : tensors_)
      result.tensors.push_back({.tensor = t.tensor, .place = t.place, .note = t.note});
    cut_ = cut_model(graph_, tensors_);
    pieces_ = reference_.pieces(cut_->pieces, outputs_.size());
    exact_scores_ = reference_.exact(cut_->scores);
  }

  // That of the tensor in the model, where the engine has the same codes in another one.
  static std::vector<int64_t> shape_in_model(ir::Shape shape, const engine::TensorDump& dump) {
    const int64_t elements = std::accumulate(dump.shape.begin(), dump.shape.end(), int64_t{1}, std::multiplies<>());
    int64_t known = 1;
    for (int64_t d : shape) known *= d == ir::kDynamic ? 1 : d;
    for (int64_t& d : shape)
      if (d == ir::kDynamic) d = elements / known, known = elements;
    return shape;
  }

  // Number of codes that differ in this batch.
  int64_t compare_tensors() {
    if (!cut_) cut(dump(engine_));
    const TensorDumps dumped = dump(engine_);  // the outputs, too, are the engine's again
    std::vector<std::vector<int32_t>> codes;
    std::vector<std::vector<float>> forced;
    std::vector<FloatView> inputs = {{input_->shape, images_}};
    for (size_t at : cut_->compared) {
      const QuantizedTensor& t = tensors_[at];
      const engine::TensorDump& d = dumped.at(t.engine_tensor);
      codes.push_back(codes_of(d, t.params));
      std::vector<float>& values = forced.emplace_back(codes.back().size());
      for (size_t i = 0; i < values.size(); ++i) values[i] = numerics::dequantize(codes.back()[i], t.params);
      const ir::TensorType& type = cut_->pieces.inputs()[inputs.size()]->type;
      const bool moved = t.engine_tensor != t.tensor;
      inputs.push_back({moved ? shape_in_model(*type.shape, d) : d.shape, {}});
    }
    for (size_t i = 0; i < forced.size(); ++i) inputs[i + 1].values = forced[i];
    const std::vector<FloatArray> computed = pieces_->run(inputs);
    int64_t different = 0;
    size_t next = outputs_.size();
    for (size_t i = 0; i < codes.size(); ++i) {
      const QuantizedTensor& t = tensors_[cut_->compared[i]];
      const std::span<const float> source = t.of_image ? std::span<const float>(images_) : computed.at(next++).values;
      const bool on_lines = dumped.at(t.engine_tensor).on_lines;
      const double near = options_.border + (on_lines ? kernels::kLineError : 0);
      different += compare_codes(source, codes[i], t.params, near, result.tensors[cut_->compared[i]]);
    }
    const std::vector<FloatArray> exact = exact_scores_->run(inputs);
    for (size_t i = 0; i < outputs_.size(); ++i)
      compare_scores(exact[i].values, computed[i].values, outputs_[i], result.scores[i]);
    return different;
  }

  int64_t compare_codes(std::span<const float> source, const std::vector<int32_t>& codes,
                        const numerics::QuantParams& params, double near, TensorCheck& check) const {
    if (source.size() != codes.size())
      refuse(str("tensor '", check.tensor, "' has ", source.size(), " elements in the model and ", codes.size(),
                 " in the engine"));
    int64_t different = 0;
    for (size_t i = 0; i < codes.size(); ++i) {
      const int32_t expected = numerics::quantize(source[i], params);
      ++check.elements;
      if (expected == codes[i]) continue;
      ++different;
      const int64_t step = std::abs(static_cast<int64_t>(expected) - codes[i]);
      check.largest_step = std::max(check.largest_step, step);
      const double position = static_cast<double>(source[i]) / params.scale + params.zero_point;
      const double border = (static_cast<double>(expected) + codes[i]) / 2;
      if (step == 1 && std::abs(position - border) <= near)
        ++check.ties;
      else
        ++check.violations;
    }
    check.different += different;
    return different;
  }

  static void compare_scores(std::span<const float> exact, std::span<const float> graph, std::span<const float> engine,
                             ScoreCheck& check) {
    OCTET_CHECK(exact.size() == engine.size() && graph.size() == engine.size());
    for (size_t i = 0; i < engine.size(); ++i) {
      const double apart = difference(exact[i], engine[i]);
      ++check.elements;
      check.different += apart > 0;
      check.largest_difference = std::max(check.largest_difference, apart);
      if (const double error = difference(exact[i], graph[i]); std::isfinite(error))
        check.float_error = std::max(check.float_error, error);
      if (std::isfinite(exact[i])) check.magnitude = std::max(check.magnitude, std::abs(static_cast<double>(exact[i])));
    }
  }

  const ir::Graph& graph_;
  std::shared_ptr<const engine::Plan> own_;
  engine::Executor& engine_;
  const data::NetworkInput& network_;
  const Reference& reference_;
  const tasks::Task& task_;
  const VerifyOptions& options_;
  std::unique_ptr<GraphRun> whole_;        // where predictions are compared
  std::vector<metrics::ScoreKind> kinds_;  // of each output
  std::unique_ptr<tasks::Evaluator> graph_evaluator_, engine_evaluator_;
  std::vector<QuantizedTensor> tensors_;
  std::optional<CutModel> cut_;
  std::unique_ptr<GraphRun> pieces_, exact_scores_;
  const engine::Buffer* input_;
  std::vector<float> images_;
  std::vector<std::vector<float>> outputs_;
  std::vector<float*> output_pointers_;
};

}  // namespace

Verification verify_engine(const ir::Graph& graph, std::shared_ptr<const engine::Plan> own, engine::Executor& engine,
                           const data::NetworkInput& input, const Reference& reference, const tasks::Task& task,
                           data::Loader& loader, const VerifyOptions& options) {
  Verifier verifier(graph, std::move(own), engine, input, reference, task, loader.dataset().labeled(), options);
  loader.start_epoch(0);
  while (!verifier.done()) {
    const std::optional<data::Batch> batch = loader.next();
    if (!batch) break;
    verifier.add(*batch);
    if (options.progress) options.progress(verifier.result.images);
  }
  if (verifier.result.images == 0) fail("there is no image to verify with");
  return verifier.take_result();
}

}  // namespace octet::app
