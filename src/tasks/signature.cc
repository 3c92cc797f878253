#include "tasks/signature.h"

#include "base/error.h"
#include "ir/program_types.h"

namespace octet::tasks {

Signature signature_of(const ir::Graph& network) {
  Signature out;
  for (const ir::Value* input : network.inputs()) out.inputs.push_back({input->name, input->type});
  if (network.program)
    for (const ir::ProgramOutput& output : ir::program_outputs(*network.program))
      out.outputs.push_back({output.name, output.type});
  else
    for (const ir::Value* output : network.outputs()) out.outputs.push_back({output->name, output->type});
  return out;
}

data::NetworkInput image_input(const Signature& network) {
  if (network.inputs.size() != 1)
    fail_usage("the network has ", network.inputs.size(), " inputs; images are fed to networks with one");
  const Port& input = network.inputs[0];
  if (input.type.data_type != ir::DataType::kFloat32 || !input.type.shape)
    fail_usage("input '", input.name, "' is ", ir::type_string(input.type),
               "; images are fed to float inputs of the form [N, C, H, W] or [N, H, W, C]");
  return data::read_network_input(input.name, *input.type.shape);
}

}  // namespace octet::tasks
