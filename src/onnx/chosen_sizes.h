// The sizes of a model's inputs: those of its file, and for those that it leaves open those that a user chose.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/input_shape.h"
#include "onnx/proto.h"

namespace octet::onnx {

class ChosenSizes {
 public:
  // `inputs` are those of the model that are no initializers. An open size gets the one chosen for it, or for another
  // size with the same symbol; an input without a shape gets the one chosen. UserError (exit 2) for a name that no
  // input has, another rank, a size that contradicts the file or another choice. Only the first size of an input, the
  // batch, may be another than that of the file, which then stays (import.h).
  ChosenSizes(const std::vector<const proto::ValueInfo*>& inputs, const std::vector<ir::InputShape>& chosen);

  // That of the file with what was chosen; nothing where nobody says any.
  std::optional<std::vector<proto::Dim>> shape(const proto::ValueInfo& input) const;
  // What open sizes that are one size have in common.
  static std::string symbol(const proto::ValueInfo& input, size_t axis, const proto::Dim& dim);

 private:
  std::map<std::string, int64_t> sizes_;        // by symbol
  std::map<std::string, ir::Shape> shapeless_;  // of inputs to which the file gives no shape
};

}  // namespace octet::onnx
