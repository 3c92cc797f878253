#include "train/calibration_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "base/error.h"
#include "train/parallel.h"

namespace octet::train {
namespace {

// Cuts a large tensor into parts for the threads. The histogram is a function of the multiset of values, so neither the
// parts nor the order in which they are merged can be seen in the result.
void observe(quant::CalibrationSet& set, const std::string& name, const at::Tensor& tensor) {
  // Element order does not matter either: any dense layout is read as it lies in memory.
  const at::Tensor values =
      tensor.is_non_overlapping_and_dense() ? tensor.to(at::kCPU) : tensor.to(at::kCPU).contiguous();
  const std::span<const float> all(values.const_data_ptr<float>(), static_cast<size_t>(values.numel()));
  const int64_t parts = std::clamp<int64_t>(values.numel() / 65536, 1, at::get_num_threads());
  std::vector<quant::Histogram> histograms(parts);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const size_t from = all.size() * part / parts, to = all.size() * (part + 1) / parts;
      histograms[part].observe(all.subspan(from, to - from));
    }
  });
  for (const quant::Histogram& histogram : histograms) set.merge(name, histogram);
}

// Of each image where the first axis is that of images, else of all.
void observe_peaks(quant::CalibrationSet& set, const std::string& name, const at::Tensor& tensor, int64_t images) {
  const bool by_image = tensor.dim() > 0 && tensor.size(0) == images;
  for (int64_t i = 0; i < (by_image ? images : 1); ++i) {
    const at::Tensor part = (by_image ? tensor[i] : tensor).to(at::kCPU).contiguous();
    set.observe_peak(name, quant::peak_of({part.const_data_ptr<float>(), static_cast<size_t>(part.numel())}));
  }
}

}  // namespace

void share_observations(quant::CalibrationSet& observers, int64_t& images, Communicator& communicator) {
  if (communicator.size() == 1) return;
  struct Seen {
    quant::CalibrationSet observers;
    int64_t images = 0;
  };
  const std::vector<std::string> names = observers.names();
  const auto bytes_of = [](const quant::CalibrationSet& set, int64_t count) {
    ByteWriter out;
    out.put(count);
    for (const auto& [name, observer] : set.observers()) out.put_text(observer.histogram().bytes());
    return out.take();
  };
  const auto add = [&](Seen& to, const std::string& bytes) {
    ByteReader in(bytes);
    to.images += in.get<int64_t>();
    for (const std::string& name : names) to.observers.merge(name, quant::Histogram::of_bytes(in.get_text()));
  };
  Seen together{.observers = observers.unseen()};
  add(together, combined(communicator, bytes_of(observers, images), [&](const std::vector<std::string>& of_ranks) {
        Seen all{.observers = observers.unseen()};
        for (const std::string& bytes : of_ranks) add(all, bytes);
        return bytes_of(all.observers, all.images);
      }));
  observers = std::move(together.observers);
  images = together.images;
}

ir::Graph without_quantization(const ir::Graph& graph) {
  ir::Graph copy = graph.clone();
  for (const auto& node : copy.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize) node->attributes["state"] = std::string(ir::kObserving);
  return copy;
}

CalibrationRun run_calibration(const ir::Graph& graph, const BatchSource& source,
                               const CalibrationRunOptions& options) {
  require(graph.inputs().size() == 1, "graph '", graph.name, "' has ", graph.inputs().size(),
          " inputs; calibration runs graphs with one");
  CalibrationRun result{.observers = quant::CalibrationSet(graph)};
  for (const std::string& tensor : options.tensors) result.observers.add(tensor, 127);
  const std::vector<std::string> names = result.observers.names();
  require(!names.empty(), "graph '", graph.name,
          "' has no FakeQuantize node that reads an activation: place quantizers before calibrating");
  OCTET_CHECK(!options.peaks || options.communicator.size() == 1);
  int64_t images_at_a_time = 0;
  Executor executor(without_quantization(graph), options.executor);
  executor.set_tap(
      [&](const ir::Value& value, const at::Tensor& tensor) {
        observe(result.observers, value.name, tensor);
        if (options.peaks) observe_peaks(result.observers, value.name, tensor, images_at_a_time);
      },
      names);
  at::Tensor batch;
  while (source(&batch)) {
    images_at_a_time = batch.size(0);
    result.images += batch.size(0);
    executor.forward({std::exchange(batch, at::Tensor())}, Mode::kEval);
    if (options.on_progress) options.on_progress(result.images);
  }
  share_observations(result.observers, result.images, options.communicator);
  require(result.images > 0, "there is no image to calibrate with");
  result.ranges = result.observers.ranges(options.calibration);
  return result;
}

}  // namespace octet::train
