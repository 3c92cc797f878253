#include "app/engine_observer.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "app/watched_plan.h"
#include "base/parallel.h"
#include "dense/matrix_product.h"
#include "dense/run.h"
#include "engine/executor.h"
#include "quant/histogram.h"
#include "tasks/image_graph.h"

namespace octet::app {
namespace {

// What one thread runs and has seen.
struct Worker {
  std::unique_ptr<engine::Executor> executor;
  std::vector<quant::Histogram> seen;           // of each watched tensor
  std::vector<std::vector<quant::Peak>> peaks;  // of each, in the current batch
  std::vector<dense::Tensor> handed;            // to the program behind the plan, by the run at hand
  std::exception_ptr failure;
};

// The values of the program that are watched, by name, and what the graph hands to it.
struct Behind {
  std::shared_ptr<const dense::Program> program;
  std::vector<std::string> names;            // watched
  std::unordered_map<int, size_t> of_value;  // index in `names`
  std::vector<std::string> handed;           // tensors of the graph, without quantizers
};

// The tensor that a FakeQuantize reads, in front of all that follow one another.
const ir::Value* without_quantizers(const ir::Value* value) {
  while (value->producer && value->producer->kind == ir::OpKind::kFakeQuantize) value = value->producer->input(0);
  return value;
}

Behind behind_of(const ir::Graph& graph, const std::vector<std::string>& names) {
  Behind out{.program = graph.program, .names = names, .of_value = {}, .handed = {}};
  if (names.empty()) return out;
  for (size_t v = 0; v < graph.program->values.size(); ++v)
    if (const auto it = std::ranges::find(names, graph.program->values[v]); it != names.end())
      out.of_value.emplace(static_cast<int>(v), static_cast<size_t>(it - names.begin()));
  for (const ir::Value* value : graph.outputs()) out.handed.push_back(without_quantizers(value)->name);
  return out;
}

// What a buffer shows as the program gets it: dense, of the type that it reads.
dense::Tensor handed_over(std::span<const float> values, const engine::Buffer& buffer, dense::Type type,
                          dense::Memory& memory) {
  dense::Tensor floats = memory.make<float>(buffer.shape);
  const std::span<float> to = floats.mutable_values<float>();
  OCTET_CHECK(to.size() == values.size());
  if (buffer.layout == engine::Layout::kFloatNhwc) {
    const int64_t pixels = buffer.h() * buffer.w(), channels = buffer.c();
    for (int64_t n = 0; n < buffer.n(); ++n)
      dense::transpose(values.data() + n * pixels * channels, to.data() + n * pixels * channels, pixels, channels);
  } else {
    std::ranges::copy(values, to.begin());
  }
  if (type == dense::Type::kFloat) return floats;
  dense::Tensor whole = memory.make<int64_t>(buffer.shape);  // indices, which plans put out as floats
  std::ranges::transform(to, whole.mutable_values<int64_t>().begin(), [](float v) { return static_cast<int64_t>(v); });
  return whole;
}

class Observer {
 public:
  // `watched`: of the graph.
  Observer(const ir::Graph& graph, std::vector<std::string> watched, Behind behind, const data::Loader& loader,
           int threads, bool peaks)
      : watched_(std::move(watched)), behind_(std::move(behind)), shape_(loader.image_shape()), peaks_(peaks) {
    std::vector<std::string> shown = watched_;
    for (const std::string& name : behind_.handed)
      if (std::ranges::find(shown, name) == shown.end()) shown.push_back(name);
    for (const std::string& name : behind_.handed)
      handed_.push_back(static_cast<size_t>(std::ranges::find(shown, name) - shown.begin()));
    const data::NetworkInput input = tasks::image_input(tasks::image_graph(graph));
    data::require_fit(input, shape_.channels, shape_.height, shape_.width);
    at_a_time_ = std::max<int64_t>(1, input.batch);
    network_ =
        watch(graph, shown, /*quantized=*/false, input.shape(at_a_time_, shape_.channels, shape_.height, shape_.width));
    // With a fixed batch there is one run at a time, which all threads share.
    const int64_t runs = std::max<int64_t>(1, loader.options().batch_size / at_a_time_);
    workers_.resize(static_cast<size_t>(std::min<int64_t>(threads, runs)));
    const int each = std::max(1, threads / static_cast<int>(workers_.size()));
    for (Worker& worker : workers_) {
      worker.executor = std::make_unique<engine::Executor>(
          network_.prepared,
          engine::ExecutorOptions{.threads = each, .team = {}, .row_bands = engine::RowBandOptions{}});
      worker.seen.resize(watched_.size() + behind_.names.size());
      worker.peaks.resize(worker.seen.size());
      worker.handed.resize(handed_.size());
    }
  }

  // Peaks go to `set`, in the order of the images.
  void add(const data::Batch& batch, quant::CalibrationSet& set) {
    OCTET_CHECK(batch.channels == shape_.channels && batch.height == shape_.height && batch.width == shape_.width);
    const int64_t runs = batch.size / at_a_time_;
    require(runs * at_a_time_ == batch.size, "the network takes ", at_a_time_, " images at a time, and of ", at_a_time_,
            " images ", at_a_time_ - batch.size, " are damaged; take them out");
    const int64_t elements = at_a_time_ * shape_.channels * shape_.height * shape_.width;
    const int64_t count = std::ssize(workers_);
    parallel_for(count, static_cast<int>(count), [&](int64_t w) {
      Worker& worker = workers_[static_cast<size_t>(w)];
      try {
        for (int64_t run = runs * w / count; run < runs * (w + 1) / count; ++run)
          observe(worker, batch.images.data() + run * elements);
      } catch (...) {
        worker.failure = std::current_exception();
      }
    });
    for (Worker& worker : workers_) {
      if (worker.failure) std::rethrow_exception(worker.failure);
      for (size_t i = 0; i < worker.peaks.size(); ++i) {
        for (const quant::Peak& peak : worker.peaks[i]) observers_of(set, i).observe_peak(name_of(i), peak);
        worker.peaks[i].clear();
      }
    }
  }

  void give(quant::CalibrationSet& set) const {
    for (const Worker& worker : workers_)
      for (size_t i = 0; i < worker.seen.size(); ++i)
        if (i < watched_.size() || worker.seen[i].count() > 0) observers_of(set, i).merge(name_of(i), worker.seen[i]);
  }

 private:
  const std::string& name_of(size_t i) const {
    return i < watched_.size() ? watched_[i] : behind_.names[i - watched_.size()];
  }

  // Tensors behind the plan are added as they come up.
  quant::CalibrationSet& observers_of(quant::CalibrationSet& set, size_t i) const {
    if (i >= watched_.size()) set.add(name_of(i), 127);
    return set;
  }

  void observe(Worker& worker, size_t i, std::span<const float> values) const {
    worker.seen[i].observe(values);
    if (peaks_) worker.peaks[i].push_back(quant::peak_of(values));
  }

  void observe(Worker& worker, const float* images) const {
    dense::Memory memory;
    worker.executor->run_and_show(&images, nullptr, network_.buffers, [&](size_t i, std::span<const float> values) {
      if (i < watched_.size()) observe(worker, i, values);
      for (size_t k = 0; k < handed_.size(); ++k)
        if (handed_[k] == i)
          worker.handed[k] = handed_over(values, network_.plan->buffers[static_cast<size_t>(network_.buffers[i])],
                                         behind_.program->inputs[k].type, memory);
    });
    if (behind_.names.empty()) return;
    dense::RunOptions options{.threads = worker.executor->threads()};
    options.watch = [&](int value, const dense::Tensor& tensor) {
      const auto it = behind_.of_value.find(value);
      if (it != behind_.of_value.end() && tensor.size() > 0)
        observe(worker, watched_.size() + it->second, tensor.values<float>());
    };
    dense::run(*behind_.program, worker.handed, options);
  }

  std::vector<std::string> watched_;
  Behind behind_;
  data::ImageShape shape_;
  bool peaks_;
  int64_t at_a_time_ = 1;
  WatchedPlan network_;         // its tensors: first those of `watched_`
  std::vector<size_t> handed_;  // of the shown ones, for each input of the program
  std::vector<Worker> workers_;
};

}  // namespace

EngineObservation observe_with_engine(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                      data::Loader& loader, const std::function<void(int64_t)>& progress, int threads,
                                      bool peaks) {
  require(graph.inputs().size() == 1, "graph '", graph.name, "' has ", graph.inputs().size(),
          " inputs; calibration runs graphs with one");
  EngineObservation result{.observers = quant::CalibrationSet(graph)};
  std::vector<std::string> behind;
  for (const std::string& tensor : tensors)
    if (graph.find_value(tensor))
      result.observers.add(tensor, 127);
    else
      behind.push_back(tensor);
  OCTET_CHECK(behind.empty() || graph.program, "no tensor '", behind.empty() ? "" : behind[0], "' to watch");
  const std::vector<std::string> watched = result.observers.names();
  require(!watched.empty(), "graph '", graph.name,
          "' has no FakeQuantize node that reads an activation: place quantizers before calibrating");
  Observer observer(graph, watched, behind_of(graph, behind), loader, threads > 0 ? threads : available_cpus(), peaks);
  loader.start_epoch(0);
  while (const std::optional<data::Batch> batch = loader.next()) {
    observer.add(*batch, result.observers);
    result.images += batch->size;
    if (progress) progress(result.images);
  }
  observer.give(result.observers);
  return result;
}

}  // namespace octet::app
