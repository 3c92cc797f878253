// Models by the ending of their file, as well as this program can run them.
#pragma once
#include "app/model.h"

namespace octet::cli {

// An ONNX file is run by LibTorch in the program that has it, else by the engine. UserError (exit 2) for a network that
// is none of the task.
std::unique_ptr<app::Model> open_model(const app::ModelFile& file, const tasks::Task& task,
                                       const app::RunOptions& options);

}  // namespace octet::cli
