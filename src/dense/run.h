// Runs a program: one operation after the other, each value freed after its last use.
#pragma once
#include <vector>

#include "dense/program.h"

namespace octet::dense {

struct RunOptions {
  int64_t memory_bytes = Memory::kDefaultLimit;  // that all tensors may take at a time, without the constants
  int threads = 1;                               // for products
  int64_t iterations = 1'000'000;                // of all Loops together, which a file may let go on for ever
};

// `program` has passed validate(). `inputs` have the types of program.inputs. UserError naming the operation whose
// inputs do not fit each other, or for which there is no memory.
std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs, const RunOptions& options = {});

}  // namespace octet::dense
