// Runs a program: one operation after the other, each value freed after its last use.
#pragma once
#include <functional>
#include <vector>

#include "dense/program.h"

namespace octet::dense {

// Computes operations of other kinds than ONNX's, which whoever rewrote the program for a machine put there. `inputs`:
// nullptr for absent ones.
using OtherOperations =
    std::function<Tensor(const Operation& operation, const std::vector<const Tensor*>& inputs, Memory& memory)>;

struct RunOptions {
  int64_t memory_bytes = Memory::kDefaultLimit;  // that all tensors may take at a time, without the constants
  int threads = 1;                               // for products, convolutions and what else is much
  int64_t iterations = 1'000'000;                // of all Loops together, which a file may let go on for ever
  OtherOperations others;                        // or none
  // Sees values of the program itself, not of its branches, as they are made; or none.
  std::function<void(int value, const Tensor& tensor)> watch;
};

// `program` has passed validate(). `inputs` have the types of program.inputs. UserError naming the operation whose
// inputs do not fit each other, or for which there is no memory.
std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs, const RunOptions& options = {});

}  // namespace octet::dense
