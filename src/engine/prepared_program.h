// A program behind a plan made ready for one instruction set: its products on codes, with their weights in the order of
// the INT8 convolution kernels, which give the same bits on all. Read-only once made.
#pragma once
#include <memory>
#include <vector>

#include "base/cpu_features.h"
#include "dense/program.h"
#include "dense/run.h"

namespace octet::engine {

class CodeLayer;

class PreparedProgram {
 public:
  // `program` has passed validate(). UserError where memory cannot be had.
  PreparedProgram(const dense::Program& program, Isa isa);
  ~PreparedProgram();
  PreparedProgram(const PreparedProgram&) = delete;
  PreparedProgram& operator=(const PreparedProgram&) = delete;

  // As dense::run; also from several threads at once. `options.others` is not used.
  std::vector<dense::Tensor> run(const std::vector<dense::Tensor>& inputs, const dense::RunOptions& options) const;

  int64_t weight_bytes() const;  // beside those of the program

 private:
  dense::Program program_;  // with operations of our own for products on codes
  std::vector<std::unique_ptr<const CodeLayer>> layers_;
};

}  // namespace octet::engine
