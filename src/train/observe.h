// Calibration on the images of a loader.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"
#include "quant/observer.h"
#include "train/communicator.h"

namespace octet::train {

// Runs one epoch of `loader` through `graph`, whose only input takes [N, C, H, W] and whose FakeQuantize nodes pass
// their input through, and returns what each of them saw. Memory does not grow with the number of images and the result
// does not depend on the batch size; with several ranks, whose loaders share the images, nor on their number. Where the
// graph fixes that, the loader must give whole batches of it.
quant::CalibrationSet observe_activations(const ir::Graph& graph, data::Loader& loader,
                                          const std::function<void(int64_t images)>& progress = {},
                                          Communicator& communicator = single_process());

// The same for `tensors`, float32 activations of a graph without FakeQuantize nodes, as int8. `peaks`: of each image,
// too, of one process.
quant::CalibrationSet observe_tensors(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                      data::Loader& loader, const std::function<void(int64_t images)>& progress = {},
                                      Communicator& communicator = single_process(), bool peaks = false);

}  // namespace octet::train
