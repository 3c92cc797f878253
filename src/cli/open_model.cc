// What the program without LibTorch can run.
#include "cli/open_model.h"

#include "app/plain_reference.h"
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
  const bool graph = file.network && !app::has_open_outputs(file);
  if (graph && (runtime == Runtime::kLibTorch || (runtime == Runtime::kAuto && libtorch_is_there())))
    throw NeedsTraining(file.path + ": is to be run as a graph in float32");
  return app::open_engine_model(file, task, options);
}

std::string reference_name(const std::string& name) {
  return !name.empty() ? name : libtorch_is_there() ? "libtorch" : "plain";
}

std::unique_ptr<app::Reference> open_reference(const std::string& name, int64_t threads) {
  if (reference_name(name) == "libtorch") throw NeedsTraining("--reference libtorch: this program has no LibTorch");
  return std::make_unique<app::PlainReference>(static_cast<int>(threads));
}

}  // namespace octet::cli
