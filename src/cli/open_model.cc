// What the program without LibTorch can run.
#include "cli/open_model.h"

namespace octet::cli {

std::unique_ptr<app::Model> open_model(const app::ModelFile& file, const tasks::Task& task,
                                       const app::RunOptions& options) {
  return app::open_engine_model(file, task, options);
}

}  // namespace octet::cli
