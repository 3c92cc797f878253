#include "train/gradient_reducer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "base/error.h"

namespace octet::train {
namespace {

using torch::autograd::variable_list;
// A shared_ptr or an intrusive_ptr, with the version of LibTorch.
using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

// The first one sets out early, as in torch's DistributedDataParallel: what backward comes to first are the last
// layers.
constexpr int64_t kFirstBucketBytes = int64_t{1} << 20;

at::ScalarType type_of(Compression compression, const at::Tensor& parameter) {
  switch (compression) {
    case Compression::kFp16:
      return at::kHalf;
    case Compression::kBf16:
      return at::kBFloat16;
    case Compression::kNone:
      break;
  }
  return parameter.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

struct Bucket {
  std::vector<size_t> members;     // of the parameters
  std::vector<at::Tensor> places;  // of their gradients in `flat`, with their strides
  at::Tensor flat;
  size_t missing = 0;  // gradients that are not there yet
  std::unique_ptr<Pending> under_way;
};

}  // namespace

struct GradientReducer::State {
  Communicator& communicator;
  ReductionOptions options;
  std::vector<at::Tensor> parameters;
  std::vector<Accumulator> accumulators;  // hold the hooks
  std::vector<size_t> bucket_of;
  std::vector<bool> ready;
  std::vector<Bucket> buckets;
  size_t next = 0;  // the first bucket that has not set out
  bool armed = false;

  State(Communicator& c, const ReductionOptions& o, std::vector<at::Tensor> p)
      : communicator(c), options(o), parameters(std::move(p)), bucket_of(parameters.size()) {}

  void make_buckets() {
    int64_t bytes = 0, limit = std::min(kFirstBucketBytes, options.bucket_bytes());
    for (size_t i = parameters.size(); i-- > 0;) {
      const auto own = static_cast<int64_t>(parameters[i].nbytes());
      if (buckets.empty() || bytes + own > limit) {
        if (!buckets.empty()) limit = options.bucket_bytes();
        buckets.emplace_back();
        bytes = 0;
      }
      buckets.back().members.push_back(i);
      bucket_of[i] = buckets.size() - 1;
      bytes += own;
    }
    for (Bucket& bucket : buckets) {
      int64_t count = 0, offset = 0;
      for (const size_t i : bucket.members) count += parameters[i].numel();
      bucket.flat = at::empty({count}, parameters[bucket.members[0]]
                                           .options()
                                           .dtype(type_of(options.compression, parameters[bucket.members[0]]))
                                           .requires_grad(false));
      for (const size_t i : bucket.members) {
        const at::Tensor& p = parameters[i];
        bucket.places.push_back(p.is_non_overlapping_and_dense()
                                    ? bucket.flat.as_strided(p.sizes(), p.strides(), offset)
                                    : bucket.flat.narrow(0, offset, p.numel()).view(p.sizes()));
        offset += p.numel();
      }
    }
  }

  void take(size_t parameter) {
    if (!armed || ready[parameter]) return;
    ready[parameter] = true;
    Bucket& bucket = buckets[bucket_of[parameter]];
    OCTET_CHECK(bucket.missing > 0);
    --bucket.missing;
    // All ranks send their buckets in one order, whatever comes first where.
    while (next < buckets.size() && buckets[next].missing == 0) send(buckets[next++]);
  }

  void send(Bucket& bucket) {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < bucket.members.size(); ++i) {
      const at::Tensor& gradient = parameters[bucket.members[i]].grad();
      if (!gradient.defined())
        bucket.places[i].zero_();
      else if (options.compression == Compression::kNone)
        bucket.places[i].copy_(gradient);
      else
        bucket.places[i].copy_(gradient / communicator.size());  // the sum must not leave the range of the type
    }
    bucket.under_way = communicator.start_all_reduce(
        bucket.flat, options.compression == Compression::kNone ? Reduce::kMean : Reduce::kSum);
  }
};

GradientReducer::GradientReducer(std::vector<at::Tensor> parameters, Communicator& communicator,
                                 const ReductionOptions& options)
    : state_(std::make_shared<State>(communicator, options, std::move(parameters))) {
  if (communicator.size() == 1) return;
  state_->make_buckets();
  for (size_t i = 0; i < state_->parameters.size(); ++i) {
    Accumulator accumulator = torch::autograd::impl::grad_accumulator(state_->parameters[i]);
    accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [weak = std::weak_ptr<State>(state_), i](const variable_list& outputs, const variable_list&) {
          if (const std::shared_ptr<State> state = weak.lock()) state->take(i);
          return outputs;
        }));
    state_->accumulators.push_back(std::move(accumulator));
  }
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::begin() {
  State& s = *state_;
  if (s.buckets.empty()) return;
  s.ready.assign(s.parameters.size(), false);
  for (Bucket& bucket : s.buckets) bucket.missing = bucket.members.size();
  s.next = 0;
  s.armed = true;
}

void GradientReducer::finish() {
  State& s = *state_;
  if (s.buckets.empty()) return;
  OCTET_CHECK(s.armed, "begin() comes first");
  s.armed = false;
  const at::NoGradGuard no_grad;
  while (s.next < s.buckets.size()) s.send(s.buckets[s.next++]);  // with parameters that the loss does not depend on
  for (Bucket& bucket : s.buckets) {
    bucket.under_way->wait();
    bucket.under_way.reset();
    for (size_t i = 0; i < bucket.members.size(); ++i) {
      at::Tensor& parameter = s.parameters[bucket.members[i]];
      if (!parameter.grad().defined()) parameter.mutable_grad() = at::empty_like(parameter.detach());
      parameter.mutable_grad().copy_(bucket.places[i]);
    }
  }
}

}  // namespace octet::train
