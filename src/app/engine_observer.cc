#include "app/engine_observer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "app/engine_build.h"
#include "base/cpu_features.h"
#include "base/parallel.h"
#include "engine/executor.h"
#include "engine/prepared_plan.h"
#include "passes/place_fake_quant.h"
#include "quant/histogram.h"
#include "tasks/image_graph.h"

namespace octet::app {
namespace {

// `graph` without quantizers, whose outputs are `watched` and nothing else, so that what no tensor needs is not run.
ir::Graph watched_graph(const ir::Graph& graph, const std::vector<std::string>& watched) {
  ir::Graph out = tasks::image_graph(graph);
  out.program = nullptr;  // what lies behind the outputs is not observed
  for (size_t i = 0; i < watched.size(); ++i) {
    ir::Value* value = out.find_value(watched[i]);
    OCTET_CHECK(value != nullptr, "no tensor '", watched[i], "' to watch");
    if (i < out.outputs().size())
      out.set_output_value(i, value);
    else
      out.add_output(value);
  }
  for (size_t i = watched.size(); i < out.outputs().size(); ++i) out.set_output_value(i, out.find_value(watched[0]));
  passes::remove_fake_quant(out);
  return out;
}

engine::Plan compiled(const ir::Graph& graph, const std::vector<int64_t>& shape) {
  try {
    return build_engine(graph, {.input_shape = shape, .isa = default_isa(), .dump_passes = {}, .outputs_stay = true},
                        {.threads = 1});
  } catch (const UserError& e) {
    throw EngineCannotRun(e);
  }
}

// The buffers of the plan that hold these tensors as floats.
std::vector<int> buffers_of(const engine::Plan& plan, const std::vector<std::string>& names) {
  std::map<std::string, int> ids;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const engine::Layout layout = plan.buffers[i].layout;
    if (layout == engine::Layout::kFloatDense || layout == engine::Layout::kFloatNhwc)
      ids.emplace(plan.buffers[i].name, static_cast<int>(i));
  }
  std::vector<int> out;
  for (const std::string& name : names) {
    const auto found = ids.find(name);
    OCTET_CHECK(found != ids.end(), "the engine has no tensor '", name, "'");
    out.push_back(found->second);
  }
  return out;
}

// What one thread runs and has seen.
struct Worker {
  std::unique_ptr<engine::Executor> executor;
  std::vector<quant::Histogram> seen;           // of each watched tensor
  std::vector<std::vector<quant::Peak>> peaks;  // of each, in the current batch
};

class Observer {
 public:
  Observer(const ir::Graph& graph, std::vector<std::string> watched, const data::Loader& loader, int threads,
           bool peaks)
      : watched_(std::move(watched)), shape_(loader.image_shape()), peaks_(peaks) {
    const ir::Graph network = watched_graph(graph, watched_);
    const data::NetworkInput input = tasks::image_input(network);
    data::require_fit(input, shape_.channels, shape_.height, shape_.width);
    at_a_time_ = std::max<int64_t>(1, input.batch);
    const auto plan = std::make_shared<const engine::Plan>(
        compiled(network, input.shape(at_a_time_, shape_.channels, shape_.height, shape_.width)));
    buffers_ = buffers_of(*plan, watched_);
    const auto prepared = std::make_shared<const engine::PreparedPlan>(plan, default_isa());
    // With a fixed batch there is one run at a time, which all threads share.
    const int64_t runs = std::max<int64_t>(1, loader.options().batch_size / at_a_time_);
    workers_.resize(static_cast<size_t>(std::min<int64_t>(threads, runs)));
    const int each = std::max(1, threads / static_cast<int>(workers_.size()));
    for (Worker& worker : workers_) {
      worker.executor = std::make_unique<engine::Executor>(
          prepared, engine::ExecutorOptions{.threads = each, .team = {}, .row_bands = engine::RowBandOptions{}});
      worker.seen.resize(watched_.size());
      worker.peaks.resize(watched_.size());
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
      for (int64_t run = runs * w / count; run < runs * (w + 1) / count; ++run) {
        const float* images = batch.images.data() + run * elements;
        worker.executor->run_and_show(&images, nullptr, buffers_, [&](size_t i, std::span<const float> values) {
          worker.seen[i].observe(values);
          if (peaks_) worker.peaks[i].push_back(quant::peak_of(values));
        });
      }
    });
    for (Worker& worker : workers_)
      for (size_t i = 0; i < watched_.size(); ++i) {
        for (const quant::Peak& peak : worker.peaks[i]) set.observe_peak(watched_[i], peak);
        worker.peaks[i].clear();
      }
  }

  void give(quant::CalibrationSet& set) const {
    for (const Worker& worker : workers_)
      for (size_t i = 0; i < watched_.size(); ++i) set.merge(watched_[i], worker.seen[i]);
  }

 private:
  std::vector<std::string> watched_;
  data::ImageShape shape_;
  bool peaks_;
  int64_t at_a_time_ = 1;
  std::vector<int> buffers_;
  std::vector<Worker> workers_;
};

}  // namespace

EngineObservation observe_with_engine(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                      data::Loader& loader, const std::function<void(int64_t)>& progress, int threads,
                                      bool peaks) {
  require(graph.inputs().size() == 1, "graph '", graph.name, "' has ", graph.inputs().size(),
          " inputs; calibration runs graphs with one");
  EngineObservation result{.observers = quant::CalibrationSet(graph)};
  for (const std::string& tensor : tensors) result.observers.add(tensor, 127);
  const std::vector<std::string> watched = result.observers.names();
  require(!watched.empty(), "graph '", graph.name,
          "' has no FakeQuantize node that reads an activation: place quantizers before calibrating");
  Observer observer(graph, watched, loader, threads > 0 ? threads : available_cpus(), peaks);
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
