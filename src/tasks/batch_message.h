// What an evaluator sees of a batch, as bytes for another process of the program: outputs, annotations and geometry,
// but no images.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace octet::tasks {

std::string batch_message(const Outputs& outputs, const data::Batch& batch);

// What a message says; `outputs` borrow from it.
class ReceivedBatch {
 public:
  // UserError where the bytes end too soon.
  explicit ReceivedBatch(std::string_view message);
  ReceivedBatch(const ReceivedBatch&) = delete;
  ReceivedBatch& operator=(const ReceivedBatch&) = delete;

  const Outputs& outputs() const { return outputs_; }
  const data::Batch& batch() const { return batch_; }

 private:
  Outputs outputs_;
  std::vector<std::vector<float>> values_;
  data::Batch batch_;
};

}  // namespace octet::tasks
