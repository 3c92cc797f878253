#include "tasks/task.h"

namespace octet::tasks {

NvinferReading Task::nvinfer(const Signature& network) const {
  NvinferReading reading;
  for (const Port& output : network.outputs) reading.outputs.push_back(output.name);
  reading.property = {{"output-tensor-meta", "1"}};
  reading.remarks = {"nvinfer has no reader for the outputs of this task: they are handed on as tensors"};
  return reading;
}

}  // namespace octet::tasks
