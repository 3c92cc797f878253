#include <octet/engine.h>

#include <utility>

#include "engine/api_common.h"

namespace octet {
namespace {

template <typename Pointer>
void check_pointers(const Pointer* pointers, const engine::Plan& plan, const std::vector<int>& ids, const char* what) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (pointers[i] == nullptr)
      throw Error(str(what, " ", i, " ('", plan.buffers[ids[i]].name, "') has no memory: the pointer is null"));
}

}  // namespace

Throughput::Throughput(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Throughput::~Throughput() = default;
Throughput::Throughput(Throughput&&) noexcept = default;
Throughput& Throughput::operator=(Throughput&&) noexcept = default;

Throughput::Ticket Throughput::submit(const std::vector<const float*>& inputs, const std::vector<float*>& outputs) {
  return submit(inputs, outputs, Completion());
}

Throughput::Ticket Throughput::submit(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
                                      Completion done) {
  const engine::Plan& plan = impl_->pool.plan().plan();
  check_count(inputs.size(), plan.inputs.size(), "inputs");
  check_count(outputs.size(), plan.outputs.size(), "outputs");
  Ticket ticket = 0;
  submit(inputs.data(), outputs.data(), &ticket, /*wait=*/true, std::move(done));
  return ticket;
}

bool Throughput::submit(const float* const* inputs, float* const* outputs, Ticket* ticket, bool wait) {
  return submit(inputs, outputs, ticket, wait, {});
}

bool Throughput::submit(const float* const* inputs, float* const* outputs, Ticket* ticket, bool wait, Completion done) {
  const engine::Plan& plan = impl_->pool.plan().plan();
  check_pointers(inputs, plan, plan.inputs, "input");
  check_pointers(outputs, plan, plan.outputs, "output");
  const Ticket given = impl_->pool.submit(inputs, outputs, wait, std::move(done));
  if (given != 0 && ticket != nullptr) *ticket = given;
  return given != 0;
}

void Throughput::wait(Ticket ticket) {
  translated([&] { impl_->pool.wait(ticket); });
}

void Throughput::wait_all() {
  impl_->pool.wait_all();
}

int Throughput::workers() const {
  return impl_->pool.workers();
}

const char* Throughput::isa() const {
  return isa_name(impl_->pool.plan().isa());
}

}  // namespace octet
