// How the processes of one training agree: every rank trains a copy of the network on its own images.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace at {
class Tensor;
}

namespace octet::train {

enum class Reduce { kMean, kMax, kSum };

// A reduction under way.
class Pending {
 public:
  virtual ~Pending() = default;
  // Returns when the tensor holds the result.
  virtual void wait() = 0;
};

// All ranks make the same calls in the same order. Each throws a UserError when another rank does not answer any more.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // 0 .. size() - 1; rank 0 writes files and tells of progress
  virtual int size() const = 0;
  // Replaces every tensor by the mean, the largest or the sum of those of all ranks, element by element, in place: the
  // same bits on every rank. Returns when all ranks have called it, with as many tensors of the same shapes and types.
  // Tensors may differ in type among each other.
  virtual void all_reduce(std::span<at::Tensor> tensors, Reduce reduce) = 0;
  // Begins the same for one contiguous tensor, which must not be touched before wait() has returned. Waited for in the
  // order of their beginnings. Here it is done at once.
  virtual std::unique_ptr<Pending> start_all_reduce(at::Tensor tensor, Reduce reduce);
  // The bytes that rank 0 gives, on every rank.
  virtual std::string broadcast(std::string bytes) = 0;
  // The bytes of all ranks, in their order, on rank 0; nothing on the others.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
};

// Does `work`, which calls no communicator, on all ranks, and throws on all of them where one of them throws a
// UserError: the first of those its own, the others one with an empty text and the same exit code, as that one tells
// what is wrong.
void on_all_ranks(Communicator& communicator, const std::function<void()>& work);

// What `all` makes of the bytes of all ranks, on every rank. `all` is called on rank 0 alone.
std::string combined(Communicator& communicator, const std::string& bytes,
                     const std::function<std::string(const std::vector<std::string>& of_ranks)>& all);

// Rank 0 of 1, whose values are those of all.
Communicator& single_process();

}  // namespace octet::train
