// What the program without LibTorch can run.
#include "cli/open_model.h"

#include "cli/other_program.h"

namespace octet::cli {
namespace {

bool libtorch_is_there() {
#ifdef OCTET_TRAINING_PROGRAM
  return has_program(OCTET_TRAINING_PROGRAM);
#else
  return false;
#endif
}

}  // namespace

std::unique_ptr<app::Model> open_model(const app::ModelFile& file, const tasks::Task& task,
                                       const app::RunOptions& options, Runtime runtime) {
  if (file.network && (runtime == Runtime::kLibTorch || (runtime == Runtime::kAuto && libtorch_is_there())))
    throw NeedsTraining(file.path + ": is to be run as a graph in float32");
  return app::open_engine_model(file, task, options);
}

}  // namespace octet::cli
