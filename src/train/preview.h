// What a training is going to do, before it starts. Without LibTorch's headers.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "train/trainer.h"

namespace octet::train {

struct Preview {
  std::string precision;  // the properties of mixed precision
  std::vector<Executor::NodeTypes> nodes;
  struct Group {
    double lr, weight_decay;
    int64_t tensors, elements;
    std::string first;  // name of one of them
  };
  std::vector<Group> groups;                      // of the optimizer's parameters
  bool masters = false;                           // it updates float32 copies
  std::vector<std::pair<int64_t, double>> rates;  // learning rates of some steps, from 1 on
  int64_t steps = 0;
};

// Runs the network once over `batch` images of zeros.
Preview preview(const ir::Graph& executed, const TrainerOptions& options, int64_t steps_per_epoch, int64_t batch);

}  // namespace octet::train
