// An ONNX file that another program runs, as the file has it: the judge of what a network gives outside of Octet.
#pragma once
#include "app/model.h"

namespace octet::app {

// `runtime`: "onnxruntime" or "openvino". UserError (exit 2) for another kind of file and for a network that is none of
// the task, (exit 1) where the runtime is not installed or refuses the file.
std::unique_ptr<Model> open_peer_model(const ModelFile& file, const std::string& runtime, const tasks::Task& task,
                                       const RunOptions& options);
// The same for a network of images whose outputs may be anything that has a row for each image. `flag`: what asks for
// the runtime, for messages.
std::unique_ptr<Model> open_peer_model(const ModelFile& file, const std::string& runtime, const std::string& flag,
                                       const RunOptions& options);

}  // namespace octet::app
