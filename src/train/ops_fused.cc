#include "train/ops_fused.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "train/ops_kernels.h"
#include "train/parallel.h"
#include "train/sync_batch_norm.h"

namespace octet::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr int64_t kFlatBlock = 16384;  // elements, a multiple of 16 lanes

// How the elements are cut into pieces of work. The pieces do not depend on the number of threads, so neither do sums.
struct Layout {
  bool flat;  // one row: no operand varies by channel
  int64_t rows, channels, rows_a_piece, pieces;

  Layout(const at::Tensor& x, bool by_channel) : flat(!by_channel) {
    channels = flat ? x.numel() : x.size(1);
    rows = flat ? 1 : x.numel() / channels;
    rows_a_piece = std::clamp<int64_t>(65536 / channels, 16, 4096);
    pieces = flat ? (channels + kFlatBlock - 1) / kFlatBlock : (rows + rows_a_piece - 1) / rows_a_piece;
  }
  int64_t words() const { return flat ? kernels::mask_words(channels) : rows * kernels::mask_words(channels); }
  int64_t begin(int64_t piece) const { return piece * rows_a_piece; }
  int64_t end(int64_t piece) const { return std::min(rows, begin(piece) + rows_a_piece); }
};

template <typename F>
void for_each_piece(const Layout& layout, F f) {
  parallel_for(layout.pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) f(piece);
  });
}

template <typename T>
const T* read(const at::Tensor& t) {
  return t.defined() ? static_cast<const T*>(t.const_data_ptr()) : nullptr;
}
template <typename T>
T* write(const at::Tensor& t) {
  return t.defined() ? static_cast<T*>(t.mutable_data_ptr()) : nullptr;
}

using Floats = std::vector<float>;

Floats vector_of(const at::Tensor& t, int64_t channels, float fallback) {
  if (!t.defined()) return Floats(channels, fallback);
  const at::Tensor c = t.detach().to(at::kFloat).contiguous();
  const float* p = c.const_data_ptr<float>();
  return c.numel() == 1 ? Floats(channels, *p) : Floats(p, p + channels);
}

at::Tensor tensor_of(const std::vector<double>& values) {
  at::Tensor t = at::empty({static_cast<int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), t.mutable_data_ptr<float>());
  return t;
}

struct Sums {
  std::vector<double> first, second;
};

// Runs f(piece, sum, second sum) over all pieces and adds the partial sums in their order.
template <typename F>
Sums sums_of(const Layout& layout, F f) {
  const int64_t c = layout.channels;
  Floats partial(2 * c * layout.pieces, 0.0f);
  for_each_piece(layout, [&](int64_t piece) { f(piece, &partial[2 * c * piece], &partial[2 * c * piece + c]); });
  Sums sums{std::vector<double>(c), std::vector<double>(c)};
  for (int64_t piece = 0; piece < layout.pieces; ++piece)
    for (int64_t i = 0; i < c; ++i) {
      sums.first[i] += partial[2 * c * piece + i];
      sums.second[i] += partial[2 * c * piece + c + i];
    }
  return sums;
}

// What the backward pass needs, besides x, gamma and the mask.
struct Saved : torch::CustomClassHolder {
  Floats center, inverse_deviation, factor_x;  // per channel: of the normalization, and scale_x
};

template <typename T>
class Pass {
 public:
  Pass(const at::Tensor& x, const PointwiseOptions& o)
      : x_(x),
        o_(o),
        affine_(o.scale_x.defined() || o.offset.defined()),
        norm_(o.gamma.defined()),
        layout_(x, affine_ || norm_) {}

  at::Tensor forward(at::Tensor* mask, Saved* saved) {
    Floats multiplier, offset;
    if (affine_ || norm_) coefficients(&multiplier, &offset, saved);
    const at::Tensor out = at::empty_like(x_);
    if (mask) *mask = at::empty({layout_.words()}, at::kShort);
    kernels::Forward<T> f;
    f.channels = layout_.channels;
    f.x = read<T>(x_);
    f.multiplier = multiplier.empty() ? nullptr : multiplier.data();
    f.offset = offset.empty() ? nullptr : offset.data();
    f.residual = read<T>(o_.residual);
    f.residual_scale = o_.residual_scale;
    f.clamp = o_.clamp;
    f.lower = o_.lower;
    f.upper = o_.upper;
    f.quantize = o_.quantize;
    f.scale = o_.scale;
    f.low = o_.low;
    f.high = o_.high;
    f.out_scale = o_.codes ? 1 : o_.scale;
    f.out = write<T>(out);
    f.mask = mask ? write<uint16_t>(*mask) : nullptr;
    for_each_piece(layout_, [&](int64_t piece) {
      if (!layout_.flat) return kernels::table<T>().forward(f, layout_.begin(piece), layout_.end(piece));
      kernels::Forward<T> part = f;
      const int64_t at = piece * kFlatBlock;
      part.channels = std::min(kFlatBlock, layout_.channels - at);
      part.x += at;
      part.out += at;
      if (part.residual) part.residual += at;
      if (part.mask) part.mask += at / 16;
      kernels::table<T>().forward(part, 0, 1);
    });
    return out;
  }

  struct Gradients {
    at::Tensor x, gamma, beta, offset, residual;
  };
  struct Wanted {
    bool x, gamma, beta, offset, residual;
  };

  Gradients backward(const at::Tensor& grad, const at::Tensor& mask, const at::Tensor& gamma, const Saved& saved,
                     Wanted wanted) {
    const int64_t c = layout_.channels;
    const double factor = o_.quantize && o_.codes ? 1.0 / static_cast<double>(o_.scale) : 1.0;
    Gradients result;
    kernels::Backward<T> b;
    b.channels = c;
    b.grad = read<T>(grad);
    b.mask = read<uint16_t>(mask);
    b.x = read<T>(x_);
    b.center = saved.center.empty() ? nullptr : saved.center.data();
    b.factor = static_cast<float>(factor);
    b.residual_factor = static_cast<float>(factor) * o_.residual_scale;
    Floats from_grad, from_x, constant;
    const bool through_statistics = norm_ && o_.batch_statistics && wanted.x;
    if (affine_ || norm_) {
      Sums sums;
      if (through_statistics || wanted.gamma || wanted.beta || wanted.offset)
        sums = sums_of(layout_, [&](int64_t piece, float* sum, float* product) {
          kernels::table<T>().gradient_sums(b, layout_.begin(piece), layout_.end(piece), sum,
                                            norm_ ? product : nullptr);
        });
      else
        sums = {std::vector<double>(c), std::vector<double>(c)};
      const Floats gammas = norm_ ? vector_of(gamma, c, 1) : Floats(c, 1.0f);
      std::vector<double> grad_gamma(c), grad_offset(c);
      from_grad.resize(c);
      from_x.resize(c);
      constant.resize(c);
      double n = static_cast<double>(layout_.rows);
      Sums of_all = sums;  // of which the statistics were made
      if (through_statistics && o_.ranks) combine_sums(*o_.ranks, n, of_all.first, of_all.second);
      for (int64_t i = 0; i < c; ++i) {
        const double inverse = norm_ ? saved.inverse_deviation[i] : 1, m = saved.factor_x[i];
        const double through = factor * gammas[i] * inverse;  // gradient with respect to x * scale_x + offset
        grad_gamma[i] = factor * m * inverse * sums.second[i];
        grad_offset[i] = norm_ && o_.batch_statistics ? 0 : through * sums.first[i];
        from_grad[i] = static_cast<float>(m * through);
        constant[i] = static_cast<float>(-m * through * of_all.first[i] / n);
        from_x[i] = static_cast<float>(-m * through * of_all.second[i] / n * m * inverse * m * inverse);
      }
      b.from_grad = from_grad.data();
      if (through_statistics) {
        b.from_x = from_x.data();
        b.constant = constant.data();
      }
      if (wanted.gamma) result.gamma = tensor_of(grad_gamma);
      if (wanted.beta) {
        std::vector<double> grad_beta(sums.first);
        for (double& g : grad_beta) g *= factor;
        result.beta = tensor_of(grad_beta);
      }
      if (wanted.offset) result.offset = tensor_of(grad_offset);
    }
    // Without coefficients both gradients may be the same tensor.
    const bool same = b.from_grad == nullptr && wanted.x && wanted.residual && o_.residual_scale == 1;
    if (wanted.x) result.x = at::empty_like(x_);
    if (wanted.residual && !same) result.residual = at::empty_like(x_);
    b.grad_x = write<T>(result.x);
    b.grad_residual = write<T>(result.residual);
    if (wanted.x || wanted.residual) apply(b);
    if (same) result.residual = result.x;
    return result;
  }

 private:
  void apply(const kernels::Backward<T>& b) {
    for_each_piece(layout_, [&](int64_t piece) {
      if (!layout_.flat) return kernels::table<T>().backward(b, layout_.begin(piece), layout_.end(piece));
      kernels::Backward<T> part = b;
      const int64_t at = piece * kFlatBlock;
      part.channels = std::min(kFlatBlock, layout_.channels - at);
      part.grad += at;
      if (part.mask) part.mask += at / 16;
      if (part.grad_x) part.grad_x += at;
      if (part.grad_residual) part.grad_residual += at;
      kernels::table<T>().backward(part, 0, 1);
    });
  }

  // y = x * multiplier + offset, with batch norm folded into both.
  void coefficients(Floats* multiplier, Floats* offset, Saved* saved) {
    const int64_t c = layout_.channels;
    const Floats scale_x = vector_of(o_.scale_x, c, 1), shift = vector_of(o_.offset, c, 0);
    if (!norm_) {
      *multiplier = scale_x;
      *offset = shift;
      *saved = Saved();
      saved->factor_x = scale_x;
      return;
    }
    const Floats gamma = vector_of(o_.gamma, c, 1), beta = vector_of(o_.beta, c, 0);
    Floats mean(c), inverse(c);  // of x * scale_x + shift, but the mean in units of x
    if (o_.batch_statistics) {
      batch_statistics(scale_x, shift, &mean, &inverse);
    } else {
      const Floats running_mean = vector_of(o_.running_mean, c, 0), running = vector_of(o_.running_variance, c, 1);
      for (int64_t i = 0; i < c; ++i) {
        mean[i] = (running_mean[i] - shift[i]) / scale_x[i];
        inverse[i] = static_cast<float>(1 / std::sqrt(static_cast<double>(running[i]) + o_.epsilon));
      }
    }
    multiplier->resize(c);
    offset->resize(c);
    for (int64_t i = 0; i < c; ++i) {
      (*multiplier)[i] = gamma[i] * inverse[i] * scale_x[i];
      (*offset)[i] = beta[i] - mean[i] * (*multiplier)[i];
    }
    saved->center = mean;
    saved->inverse_deviation = inverse;
    saved->factor_x = scale_x;
  }

  void batch_statistics(const Floats& scale_x, const Floats& shift, Floats* mean, Floats* inverse) {
    const int64_t c = layout_.channels;
    require(layout_.rows > 1 || o_.ranks,
            "batch norm over one value a channel has no variance: use a larger batch or image");
    // Sums are taken around the first row, so that a large mean does not cancel the digits of the variance.
    Floats center(c);
    const at::Tensor first = x_.dim() == 4 ? x_.select(0, 0).select(1, 0).select(1, 0) : x_.select(0, 0);
    const at::Tensor row = first.to(at::kFloat).contiguous();
    std::copy_n(row.const_data_ptr<float>(), c, center.begin());
    const Sums sums = sums_of(layout_, [&](int64_t piece, float* sum, float* square) {
      kernels::table<T>().statistics(read<T>(x_), c, center.data(), layout_.begin(piece), layout_.end(piece), sum,
                                     square);
    });
    double n = static_cast<double>(layout_.rows);
    std::vector<double> means(c), variances(c);  // of x
    for (int64_t i = 0; i < c; ++i) {
      const double moved = sums.first[i] / n;
      means[i] = center[i] + moved;
      variances[i] = std::max(sums.second[i] / n - moved * moved, 0.0);
    }
    if (o_.ranks) {
      combine_statistics(*o_.ranks, n, means, variances);
      n *= o_.ranks->size();
    }
    float* running_mean = o_.running_mean.mutable_data_ptr<float>();
    float* running_variance = o_.running_variance.mutable_data_ptr<float>();
    for (int64_t i = 0; i < c; ++i) {
      const double m = scale_x[i], variance = variances[i] * m * m;
      (*mean)[i] = static_cast<float>(means[i]);
      (*inverse)[i] = static_cast<float>(1 / std::sqrt(variance + o_.epsilon));
      const double mean_y = means[i] * m + shift[i];
      running_mean[i] = static_cast<float>(running_mean[i] * (1 - o_.momentum) + mean_y * o_.momentum);
      running_variance[i] =
          static_cast<float>(running_variance[i] * (1 - o_.momentum) + variance * n / (n - 1) * o_.momentum);
    }
  }

  const at::Tensor& x_;
  const PointwiseOptions& o_;
  const bool affine_, norm_;
  const Layout layout_;
};

at::MemoryFormat format_of(const at::Tensor& x) {
  return x.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

struct Pointwise : torch::autograd::Function<Pointwise> {
  using Optional = std::optional<at::Tensor>;

  // The tensors that may have a gradient are arguments, so that autograd sees them; the rest is in `options`.
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const Optional& gamma_or_none,
                            const Optional& beta, const Optional& offset, const Optional& residual_or_none,
                            const PointwiseOptions& options, bool keep_mask) {
    const at::Tensor gamma = gamma_or_none.value_or(at::Tensor()), residual = residual_or_none.value_or(at::Tensor());
    auto o = std::make_shared<PointwiseOptions>(options);
    const at::Tensor dense = x.contiguous(format_of(x));
    if (residual.defined()) o->residual = residual.detach().to(x.scalar_type()).contiguous(format_of(x));
    const auto saved = c10::make_intrusive<Saved>();
    const bool masked = keep_mask && (o->clamp || o->quantize);
    at::Tensor mask, out;
    if (x.scalar_type() == at::kFloat) {
      out = Pass<float>(dense, *o).forward(masked ? &mask : nullptr, saved.get());
    } else {
      out = Pass<kernels::Bf16>(dense, *o).forward(masked ? &mask : nullptr, saved.get());
    }
    if (!keep_mask) return out;
    // Only batch norm looks at x again.
    ctx->save_for_backward({gamma.defined() ? dense : at::Tensor(), gamma, mask});
    ctx->saved_data["saved"] = c10::IValue::make_capsule(saved);
    o->residual = at::Tensor();
    ctx->saved_data["options"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(std::move(*o)));
    ctx->saved_data["present"] =
        std::vector<bool>{true, gamma.defined(), beta.has_value(), offset.has_value(), residual.defined()};
    return out;
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    const auto tensors = ctx->get_saved_variables();
    const auto saved = c10::static_intrusive_pointer_cast<Saved>(ctx->saved_data["saved"].toCapsule());
    const auto holder = c10::static_intrusive_pointer_cast<Holder>(ctx->saved_data["options"].toCapsule());
    const at::Tensor grad = grads[0].contiguous(format_of(grads[0]));
    const at::Tensor& x = tensors[0].defined() ? tensors[0] : grad;  // the shape is all that counts without batch norm
    // Autograd numbers only those arguments that are there.
    const auto present = ctx->saved_data["present"].toBoolList();
    bool wanted[5];
    for (size_t i = 0, edge = 0; i < 5; ++i) wanted[i] = present[i] && ctx->needs_input_grad(edge++);
    return x.scalar_type() == at::kFloat ? run<float>(x, *holder, grad, tensors, *saved, wanted)
                                         : run<kernels::Bf16>(x, *holder, grad, tensors, *saved, wanted);
  }

 private:
  struct Holder : torch::CustomClassHolder {
    explicit Holder(PointwiseOptions o) : options(std::move(o)) {}
    PointwiseOptions options;
  };

  template <typename T>
  static tensor_list run(const at::Tensor& x, const Holder& holder, const at::Tensor& grad,
                         const std::vector<at::Tensor>& tensors, const Saved& saved, const bool* wanted) {
    Pass<T> pass(x, holder.options);
    const auto g =
        pass.backward(grad, tensors[2], tensors[1], saved, {wanted[0], wanted[1], wanted[2], wanted[3], wanted[4]});
    return {g.x, g.gamma, g.beta, g.offset, g.residual, {}, {}};
  }
};

}  // namespace

bool has_pointwise(at::Device device, at::ScalarType type) {
  return device.is_cpu() && (type == at::kFloat || type == at::kBFloat16);
}

at::Tensor pointwise(const at::Tensor& x, const PointwiseOptions& o) {
  const bool by_channel = o.scale_x.defined() || o.offset.defined() || o.gamma.defined();
  if (by_channel && x.dim() < 2) {  // with one scale
    PointwiseOptions inner = o;
    if (o.residual.defined()) inner.residual = o.residual.reshape({1, -1});
    return pointwise(x.reshape({1, -1}), inner).reshape(x.sizes());
  }
  if (by_channel && x.dim() != 4 && x.dim() != 2) {  // other ranks become rows of channels
    std::vector<int64_t> moved = x.movedim(1, -1).sizes().vec();
    const auto rows = [&](const at::Tensor& t) { return t.movedim(1, -1).reshape({-1, x.size(1)}); };
    PointwiseOptions inner = o;
    if (o.residual.defined()) inner.residual = rows(o.residual);
    return pointwise(rows(x), inner).reshape(moved).movedim(-1, 1);
  }
  OCTET_CHECK(!o.residual.defined() || o.residual.sizes() == x.sizes(), "residual of another shape");
  const auto needs = [](const at::Tensor& t) { return t.defined() && t.requires_grad(); };
  const bool grad = at::GradMode::is_enabled() &&
                    (needs(x) || needs(o.gamma) || needs(o.beta) || needs(o.offset) || needs(o.residual));
  const auto optional = [](const at::Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; };
  return Pointwise::apply(x, optional(o.gamma), optional(o.beta), optional(o.offset), optional(o.residual), o, grad);
}

}  // namespace octet::train
