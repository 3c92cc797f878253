// Models by the ending of their file, as well as this program can run them.
#pragma once
#include <memory>
#include <string>

#include "app/model.h"
#include "app/reference.h"

namespace octet::cli {

// Who runs an ONNX file. kAuto: LibTorch where it is there, which computes FakeQuantize in float as training does; else
// the engine, which runs it as it would be deployed. What ends with its own suppression only the engine runs.
enum class Runtime { kAuto, kEngine, kLibTorch };

// UserError (exit 2) for a network that is none of the task. NeedsTraining in the program without LibTorch where that
// is to run it.
std::unique_ptr<app::Model> open_model(const app::ModelFile& file, const tasks::Task& task,
                                       const app::RunOptions& options, Runtime runtime = Runtime::kAuto);

// What an engine is held against: "libtorch", "plain" (app/plain_reference.h), or whichever is there (""), LibTorch
// before the other. NeedsTraining as above. `threads`: of the plain one; 0: as many as CPUs.
std::unique_ptr<app::Reference> open_reference(const std::string& name, int64_t threads);
// The name of what open_reference() takes for `name`.
std::string reference_name(const std::string& name);

}  // namespace octet::cli
