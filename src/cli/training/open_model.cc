// What the program with LibTorch can run.
#include "cli/open_model.h"

#include "app/training/graph_model.h"

namespace octet::cli {

std::unique_ptr<app::Model> open_model(const app::ModelFile& file, const tasks::Task& task,
                                       const app::RunOptions& options, Runtime runtime) {
  return file.network && runtime != Runtime::kEngine ? app::open_graph_model(file, task)
                                                     : app::open_engine_model(file, task, options);
}

}  // namespace octet::cli
