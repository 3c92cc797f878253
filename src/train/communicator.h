// How the processes of one training agree: every rank trains a copy of the network on its own images.
#pragma once
#include <span>

namespace at {
class Tensor;
}

namespace octet::train {

enum class Reduce { kMean, kMax };

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // 0 .. size() - 1; rank 0 writes files and tells of progress
  virtual int size() const = 0;
  // Replaces every tensor by the mean or the largest of those of all ranks, element by element, in place: the same bits
  // on every rank. Returns when all ranks have called it; all call it in the same order, with as many tensors of the
  // same shapes and types. Tensors may differ in type among each other.
  virtual void all_reduce(std::span<at::Tensor> tensors, Reduce reduce) = 0;
};

// Rank 0 of 1, whose values are those of all.
Communicator& single_process();

}  // namespace octet::train
