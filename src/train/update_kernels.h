// Kernels of the optimizers: everything that an update does to an element while it is in a register. Plain functions on
// pointers, no LibTorch. Compiled once per instruction set (update_kernels_<isa>.cc), chosen at run time; all give the
// same bits. Arithmetic is float32 without FMA, sums are float64, whatever the tensors hold. The formulas themselves
// are in update_formulas.h, which CUDA's kernels (cuda/) share.
#pragma once
#include <cstdint>

namespace octet::train::kernels {

enum class Storage : uint8_t { kFloat32, kBFloat16, kFloat16 };
struct ConstArray {
  const void* data = nullptr;
  Storage type = Storage::kFloat32;
};
struct Array {
  void* data = nullptr;
  Storage type = Storage::kFloat32;
};

// One tensor of a step. All arrays have as many elements, in the same order.
struct UpdateArrays {
  ConstArray gradient;
  Array weight;             // is updated: rounded once where it is of a low type
  Array copy;               // gets the new weight, too; null: none
  float* first = nullptr;   // momentum, or the first moment; null where the rule has none
  float* second = nullptr;  // second moment
};

enum class UpdateKind : uint8_t { kSgd, kAdam, kLamb };

// One step t of one tensor; g is the gradient times gradient_factor, w the weight.
// kSgd (PyTorch's SGD without dampening, Apex's FusedSGD):
//   g += decay w; m = momentum m + g; d = nesterov ? g + momentum m : m; w -= rate d; without momentum d = g.
//   decay_last: the decay is added to d and not to g (Apex's wd_after_momentum).
// kAdam, with L2 decay (g += decay w) or decoupled (w *= 1 - rate decay):
//   m += gain1 (g - m); v = beta2 v + gain2 g g; w -= rate c1 m / (sqrt(v) c2 + eps)
//   with c1 = 1 / (1 - beta1^t), c2 = 1 / sqrt(1 - beta2^t), or 1 both without bias correction.
// kLamb (You et al. 2020; Apex's FusedLAMB): the moments of kAdam, u = c1 m / (sqrt(v) c2 + eps) + decay w,
//   w -= rate |w| / |u| u; rate alone where a norm is 0, or `decay` is (`always_adapt`: also then).
struct UpdateRule {
  UpdateKind kind = UpdateKind::kSgd;
  float gradient_factor = 1;
  float rate = 0, decay = 0;
  float momentum = 0;
  bool nesterov = false, decay_last = false;
  float beta2 = 0, eps = 0, correction1 = 1, correction2 = 1;
  float gain1 = 1, gain2 = 1;  // 1 - beta, which float32 would not give of beta
  int64_t step = 1;            // t; 0: without bias correction
  bool decoupled = true;
  bool always_adapt = false;
  bool operator==(const UpdateRule&) const = default;
};

struct LambNorms {
  double weight = 0, update = 0;  // squared
};

struct UpdateTable {
  // Of the elements begin .. end - 1, times `factor`: not finite where one of them is not.
  double (*square_sum)(const ConstArray& gradient, float factor, int64_t begin, int64_t end);
  // kSgd and kAdam.
  void (*update)(const UpdateArrays&, const UpdateRule&, int64_t begin, int64_t end);
  // kLamb: the moments, and the norms of w and u; then w -= rate u.
  LambNorms (*lamb_moments)(const UpdateArrays&, const UpdateRule&, int64_t begin, int64_t end);
  void (*lamb_update)(const UpdateArrays&, const UpdateRule&, float rate, int64_t begin, int64_t end);
};

// The best for this CPU.
const UpdateTable& update_table();

// One per instruction set; for tests and update_table(). The last two only where the CPU has it.
const UpdateTable& update_table_base();
const UpdateTable& update_table_avx2();
const UpdateTable& update_table_avx512();

}  // namespace octet::train::kernels
