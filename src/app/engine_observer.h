// Shows the activations of a float network to observers, on the engine's own FP32 kernels: calibration without
// LibTorch.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/watched_plan.h"
#include "data/loader.h"
#include "ir/graph.h"
#include "quant/observer.h"

namespace octet::app {

struct EngineObservation {
  quant::CalibrationSet observers;
  int64_t images = 0;
};

// Runs one epoch of `loader` through `graph` without its FakeQuantize nodes, and returns what each of them would have
// read, and the float32 activations `tensors`, as int8; those that are no tensors of the graph are of the program
// behind it, and are left out where no image got to them. Images are shared by the threads, each of which runs whole
// ones (or whole batches where the graph fixes their size); the result depends on neither. Memory: for every thread an
// arena and a histogram of each tensor. `progress`: after every batch, with the images so far. `peaks`: those of single
// images, too, which method ema goes by. EngineCannotRun before the first image runs; UserError when there is none, or
// nothing to watch.
EngineObservation observe_with_engine(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                      data::Loader& loader, const std::function<void(int64_t images)>& progress = {},
                                      int threads = 0, bool peaks = false);

}  // namespace octet::app
