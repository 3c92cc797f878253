// Calibration: runs the float graph over images and shows every tensor that will be quantized to its observer.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "quant/observer.h"
#include "train/communicator.h"
#include "train/executor.h"

namespace at {
class Tensor;
}

namespace octet::train {

struct CalibrationRunOptions {
  // float32 is the float graph as such; bf16 is faster where the CPU has it, and its ranges differ by up to 2^-8.
  ExecutorOptions executor;
  quant::CalibrationOptions calibration;
  std::function<void(int64_t images)> on_progress;  // after every batch, with the images so far
  // Each rank has images of its own; the result, on every rank, is that of all of them.
  Communicator& communicator = single_process();
  bool peaks = false;                // of each image, too (quant::Observer::observe_peak); of one process
  std::vector<std::string> tensors;  // float32 activations to watch as int8, beside those that a FakeQuantize reads
};

struct CalibrationRun {
  std::map<std::string, quant::Range> ranges;  // by the name of the value that a FakeQuantize reads
  quant::CalibrationSet observers;             // for reports that compare the methods
  int64_t images = 0;
};

// What all ranks have seen together, on every rank: as if one had seen it all, as histograms are functions of the
// values alone.
void share_observations(quant::CalibrationSet& observers, int64_t& images, Communicator& communicator);

// A copy whose FakeQuantize nodes pass their input through.
ir::Graph without_quantization(const ir::Graph& graph);

// Gives the next batch into `batch` (float32, [N, C, H, W], as the graph's only input takes it); false: no more.
using BatchSource = std::function<bool(at::Tensor* batch)>;

// Runs `graph` over all batches of `source`. Whatever the states of its FakeQuantize nodes, they pass their input
// through: ranges are those of the float network. Memory does not grow with the number of images; the result does not
// depend on the batch size. UserError when the graph has more than one input, when there is no FakeQuantize that reads
// an activation, when there is no image, or when a tensor holds NaN or infinities.
CalibrationRun run_calibration(const ir::Graph& graph, const BatchSource& source,
                               const CalibrationRunOptions& options = {});

}  // namespace octet::train
