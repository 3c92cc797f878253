#include "app/model_file.h"

#include <filesystem>

#include "app/network_file.h"
#include "base/error.h"
#include "engine/engine_file.h"
#include "ir/program_types.h"

namespace octet::app {

tasks::Signature signature_of(const engine::Plan& plan) {
  const auto port = [&](int id) {
    const engine::Buffer& b = plan.buffers[static_cast<size_t>(id)];
    return tasks::Port{b.name, {ir::DataType::kFloat32, ir::Shape(b.shape.begin(), b.shape.end())}};
  };
  tasks::Signature out;
  for (const int id : plan.inputs) out.inputs.push_back(port(id));
  if (plan.program)
    for (const ir::ProgramOutput& output : ir::program_outputs(*plan.program))
      out.outputs.push_back({output.name, output.type});
  else
    for (const int id : plan.outputs) out.outputs.push_back(port(id));
  return out;
}

ModelFile read_model_file(const std::string& path, const std::vector<ir::InputShape>& shapes) {
  const std::string ending = std::filesystem::path(path).extension().string();
  ModelFile file;
  file.path = path;
  if (ending == ".octet") {
    file.plan = engine::load_engine(path);
    file.metadata = file.plan->metadata;
    file.signature = signature_of(*file.plan);
  } else if (ending == ".onnx") {
    file.network = load_network(path, shapes);
    file.metadata = file.network->metadata;
    file.signature = tasks::signature_of(*file.network);
  } else {
    fail_usage(path, ": unknown kind of model '", ending, "'; expected .onnx or .octet");
  }
  return file;
}

bool has_open_outputs(const ModelFile& file) {
  return (file.network && file.network->program) || (file.plan && file.plan->program);
}

void require_one_image(const ModelFile& file, int64_t batch) {
  if (has_open_outputs(file) && batch != 1)
    fail_usage(file.path, ": takes ", batch == 0 ? "any number of" : std::to_string(batch),
               " images at a time, and the sizes of its outputs come up in a run, so that ",
               "none of their rows says which image it is of; export it for one image");
}

}  // namespace octet::app
