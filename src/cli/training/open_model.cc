// What the program with LibTorch can run.
#include "cli/open_model.h"

#include "app/plain_reference.h"
#include "app/training/graph_model.h"
#include "app/training/torch_reference.h"

namespace octet::cli {

std::unique_ptr<app::Model> open_model(const app::ModelFile& file, const tasks::Task& task,
                                       const app::RunOptions& options, Runtime runtime) {
  return file.network && !app::has_open_outputs(file) && runtime != Runtime::kEngine
             ? app::open_graph_model(file, task)
             : app::open_engine_model(file, task, options);
}

std::string reference_name(const std::string& name) {
  return name.empty() ? "libtorch" : name;
}

std::unique_ptr<app::Reference> open_reference(const std::string& name, int64_t threads) {
  if (reference_name(name) == "plain") return std::make_unique<app::PlainReference>(static_cast<int>(threads));
  return std::make_unique<app::TorchReference>();
}

}  // namespace octet::cli
