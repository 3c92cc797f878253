// What the program with LibTorch can run.
#include "cli/open_model.h"

#include "app/training/graph_model.h"

namespace octet::cli {

std::unique_ptr<app::Model> open_model(const std::string& path, const tasks::Task& task,
                                       const app::RunOptions& options) {
  return path.ends_with(".onnx") ? app::open_graph_model(path, task) : app::open_engine_model(path, task, options);
}

}  // namespace octet::cli
