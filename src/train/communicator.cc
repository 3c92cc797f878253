#include "train/communicator.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <sstream>

#include "base/error.h"

namespace octet::train {
namespace {

class SingleProcess : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(std::span<at::Tensor>, Reduce) override {}
  std::string broadcast(std::string bytes) override { return bytes; }
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
};

struct Done : Pending {
  void wait() override {}
};

}  // namespace

std::unique_ptr<Pending> Communicator::start_all_reduce(at::Tensor tensor, Reduce reduce) {
  all_reduce({&tensor, 1}, reduce);
  return std::make_unique<Done>();
}

void on_all_ranks(Communicator& communicator, const std::function<void()>& work) {
  std::string own;
  std::optional<UserError> error;
  try {
    work();
  } catch (const UserError& thrown) {
    error = thrown;
    own = std::to_string(static_cast<int>(thrown.code()));
  }
  const std::string first_that_failed = combined(communicator, own, [](const std::vector<std::string>& codes) {
    for (size_t rank = 0; rank < codes.size(); ++rank)
      if (!codes[rank].empty()) return str(rank, " ", codes[rank]);
    return std::string();
  });
  if (first_that_failed.empty()) return;
  std::istringstream in(first_that_failed);
  int rank = 0, code = 0;
  in >> rank >> code;
  if (rank == communicator.rank()) throw *error;
  throw UserError("", static_cast<ExitCode>(code));
}

std::string combined(Communicator& communicator, const std::string& bytes,
                     const std::function<std::string(const std::vector<std::string>&)>& all) {
  const std::vector<std::string> of_ranks = communicator.gather(bytes);
  return communicator.broadcast(communicator.rank() == 0 ? all(of_ranks) : "");
}

Communicator& single_process() {
  static SingleProcess only;
  return only;
}

}  // namespace octet::train
