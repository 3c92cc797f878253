// Models by the ending of their file, as well as this program can run them.
#pragma once
#include "app/model.h"

namespace octet::cli {

// Who runs an ONNX file. kAuto: LibTorch where it is there, which computes FakeQuantize in float as training does; else
// the engine, which runs it as it would be deployed.
enum class Runtime { kAuto, kEngine, kLibTorch };

// UserError (exit 2) for a network that is none of the task. NeedsTraining in the program without LibTorch where that
// is to run it.
std::unique_ptr<app::Model> open_model(const app::ModelFile& file, const tasks::Task& task,
                                       const app::RunOptions& options, Runtime runtime = Runtime::kAuto);

}  // namespace octet::cli
