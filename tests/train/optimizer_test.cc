// The updates against ATen's fused optimizers (which are PyTorch's) and against formulas written out in float64.
#include "train/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/half.h"

namespace octet::train {
namespace {

// Of all sizes around the vectors, blocks and chunks of the kernels; the last is a convolution in NHWC memory.
std::vector<NamedParameter> parameters(uint64_t seed) {
  at::manual_seed(seed);
  std::vector<NamedParameter> out;
  for (const int64_t size : {1, 15, 16, 17, 1000, 1025, 70'001})
    out.push_back({"p" + std::to_string(size), at::randn({size}).set_requires_grad(true)});
  at::Tensor conv = at::randn({8, 5, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  out.push_back({"conv", conv.set_requires_grad(true)});
  return out;
}

void set_gradients(std::vector<NamedParameter>& p, int step, at::ScalarType type = at::kFloat) {
  at::manual_seed(1000 + static_cast<uint64_t>(step));
  for (NamedParameter& each : p) {
    const at::Tensor g = at::empty_like(each.tensor.detach(), at::kFloat).normal_();
    each.tensor.mutable_grad() = (g * std::exp(g.flatten()[0].item<float>())).to(type);
  }
}

// Largest difference in units of the size of the tensor's largest element.
double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().to(at::kDouble), y = b.detach().to(at::kDouble);
  return ((x - y).abs().max() / y.abs().max()).item<double>();
}

OptimizerOptions options(OptimizerType type) {
  OptimizerOptions o;
  o.type = type;
  o.lr = 0.01;
  o.weight_decay = 0.05;
  return o;
}

// 1,000 steps of PyTorch's own. Each step rounds a weight by half a unit (2^-24 of it) here and there, and these errors
// add up as a random walk does: sqrt(1000) * 2^-24 is 2e-6.
constexpr double kAfterThousand = 4e-6;

TEST(Optimizer, AThousandStepsAreThoseOfPyTorchsSgd) {
  for (const bool nesterov : {false, true}) {
    OptimizerOptions o = options(OptimizerType::kSgd);
    o.nesterov = nesterov;
    std::vector<NamedParameter> ours = parameters(1), theirs = parameters(1);
    Optimizer optimizer(o, ours);
    std::vector<at::Tensor> momenta;
    for (const NamedParameter& p : theirs) momenta.push_back(at::zeros_like(p.tensor.detach()));
    for (int step = 0; step < 1000; ++step) {
      const double factor = 1 - step / 1000.0;
      set_gradients(ours, step);
      set_gradients(theirs, step);
      optimizer.step(factor);
      at::NoGradGuard no_grad;
      std::vector<at::Tensor> weights, gradients;
      for (const NamedParameter& p : theirs) weights.push_back(p.tensor), gradients.push_back(p.tensor.grad());
      at::_fused_sgd_(weights, gradients, momenta, o.weight_decay, o.momentum, o.lr * factor, 0.0, nesterov, false,
                      step == 0);
    }
    for (size_t i = 0; i < ours.size(); ++i)
      EXPECT_LT(distance(ours[i].tensor, theirs[i].tensor), kAfterThousand) << ours[i].name << ' ' << nesterov;
  }
}

TEST(Optimizer, AThousandStepsAreThoseOfPyTorchsAdamAndAdamW) {
  for (const OptimizerType type : {OptimizerType::kAdam, OptimizerType::kAdamW}) {
    const OptimizerOptions o = options(type);
    std::vector<NamedParameter> ours = parameters(2), theirs = parameters(2);
    Optimizer optimizer(o, ours);
    std::vector<at::Tensor> first, second, steps;
    for (const NamedParameter& p : theirs) {
      first.push_back(at::zeros_like(p.tensor.detach()));
      second.push_back(at::zeros_like(p.tensor.detach()));
      steps.push_back(at::zeros({}));
    }
    for (int step = 0; step < 1000; ++step) {
      set_gradients(ours, step);
      set_gradients(theirs, step);
      optimizer.step(1);
      at::NoGradGuard no_grad;
      std::vector<at::Tensor> weights, gradients;
      for (const NamedParameter& p : theirs) weights.push_back(p.tensor), gradients.push_back(p.tensor.grad());
      at::_foreach_add_(steps, 1);
      if (type == OptimizerType::kAdam) {
        at::_fused_adam_(weights, gradients, first, second, at::TensorList(), steps, o.lr, 0.9, 0.999, o.weight_decay,
                         o.eps, false, false, std::nullopt, std::nullopt);
      } else {
        at::_fused_adamw_(weights, gradients, first, second, at::TensorList(), steps, o.lr, 0.9, 0.999, o.weight_decay,
                          o.eps, false, false, std::nullopt, std::nullopt);
      }
    }
    for (size_t i = 0; i < ours.size(); ++i)
      EXPECT_LT(distance(ours[i].tensor, theirs[i].tensor), kAfterThousand) << ours[i].name;
  }
}

// The formulas of the header in float64, one element at a time.
struct Plain {
  std::vector<double> weight, first, second;
  explicit Plain(const at::Tensor& t) {
    const at::Tensor flat = t.detach().to(at::kDouble).contiguous().flatten();
    weight.assign(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    first.assign(weight.size(), 0);
    second.assign(weight.size(), 0);
  }
};

std::vector<double> values(const at::Tensor& t) {
  return Plain(t).weight;
}

void sgd_step(Plain& p, const std::vector<double>& g, const OptimizerOptions& o, double decay) {
  for (size_t i = 0; i < g.size(); ++i) {
    double d = g[i] + (o.wd_after_momentum ? 0 : decay * p.weight[i]);
    p.first[i] = o.momentum * p.first[i] + d;
    d = o.nesterov ? d + o.momentum * p.first[i] : p.first[i];
    if (o.wd_after_momentum) d += decay * p.weight[i];
    p.weight[i] -= o.lr * d;
  }
}

void lamb_step(Plain& p, const std::vector<double>& g, const OptimizerOptions& o, double decay, int t) {
  const double b1 = o.betas[0], b2 = o.betas[1];
  const double c1 = o.bias_correction ? 1 - std::pow(b1, t) : 1, c2 = o.bias_correction ? 1 - std::pow(b2, t) : 1;
  std::vector<double> u(g.size());
  double size = 0, length = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    p.first[i] = b1 * p.first[i] + (1 - b1) * g[i];
    p.second[i] = b2 * p.second[i] + (1 - b2) * g[i] * g[i];
    u[i] = p.first[i] / c1 / (std::sqrt(p.second[i] / c2) + o.eps) + decay * p.weight[i];
    size += p.weight[i] * p.weight[i];
    length += u[i] * u[i];
  }
  const bool adapts = (decay != 0 || o.use_nvlamb) && size > 0 && length > 0;
  const double rate = adapts ? o.lr * std::sqrt(size / length) : o.lr;
  for (size_t i = 0; i < g.size(); ++i) p.weight[i] -= rate * u[i];
}

double distance(const at::Tensor& a, const Plain& b) {
  return distance(a.contiguous().flatten(), at::tensor(b.weight, at::kDouble));
}

TEST(Optimizer, TheDecayMayComeAfterTheMomentum) {
  OptimizerOptions o = options(OptimizerType::kSgd);
  o.wd_after_momentum = o.nesterov = true;
  std::vector<NamedParameter> p = parameters(3);
  std::vector<Plain> plain;
  for (const NamedParameter& each : p) plain.emplace_back(each.tensor);
  Optimizer optimizer(o, p);
  for (int step = 0; step < 50; ++step) {
    set_gradients(p, step);
    for (size_t i = 0; i < p.size(); ++i) sgd_step(plain[i], values(p[i].tensor.grad()), o, o.weight_decay);
    optimizer.step(1);
  }
  for (size_t i = 0; i < p.size(); ++i) EXPECT_LT(distance(p[i].tensor, plain[i]), 1e-6) << p[i].name;
}

TEST(Optimizer, LambScalesEachStepByTheTrustRatio) {
  for (const bool corrected : {true, false})
    for (const bool nvlamb : {true, false}) {
      OptimizerOptions o = options(OptimizerType::kLamb);
      o.bias_correction = corrected;
      o.use_nvlamb = nvlamb;
      o.eps = 1e-6;
      std::vector<NamedParameter> p = parameters(4);
      p[3].is_bias = true;  // no decay
      {
        at::NoGradGuard no_grad;
        p[1].tensor.zero_();
      }
      std::vector<Plain> plain;
      for (const NamedParameter& each : p) plain.emplace_back(each.tensor);
      Optimizer optimizer(o, p);
      for (int step = 0; step < 30; ++step) {
        set_gradients(p, step);
        for (size_t i = 0; i < p.size(); ++i)
          lamb_step(plain[i], values(p[i].tensor.grad()), o, i == 3 ? 0 : o.weight_decay, step + 1);
        optimizer.step(1);
      }
      for (size_t i = 0; i < p.size(); ++i) EXPECT_LT(distance(p[i].tensor, plain[i]), 3e-6) << p[i].name;
    }
}

// What runs on other devices does the same steps.
TEST(Optimizer, OperatorsDoTheStepsOfTheKernels) {
  for (const kernels::UpdateKind kind :
       {kernels::UpdateKind::kSgd, kernels::UpdateKind::kAdam, kernels::UpdateKind::kLamb})
    for (const int variant : {0, 1}) {
      kernels::UpdateRule rule;
      rule.kind = kind;
      rule.gradient_factor = 0.5f;
      rule.rate = 0.01f;
      rule.decay = 0.1f;
      rule.momentum = rule.beta2 = 0.9f;
      rule.gain1 = rule.gain2 = 0.1f;
      rule.eps = 1e-6f;
      rule.nesterov = rule.decay_last = variant == 1;
      rule.decoupled = variant == 0;
      rule.step = variant == 0 ? 3 : 0;
      if (rule.step > 0) {
        rule.correction1 = static_cast<float>(1 / (1 - std::pow(0.9, 3)));
        rule.correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(0.9, 3)));
      }
      std::vector<UpdateTensor> a, b;
      for (const NamedParameter& p : parameters(5)) {
        const at::Tensor w = p.tensor.detach(), g = at::randn_like(w), m = at::randn_like(w), v = at::rand_like(w);
        for (std::vector<UpdateTensor>* list : {&a, &b})
          list->push_back({g, w.clone(), at::empty_like(w, at::kBFloat16), m.clone(),
                           kind == kernels::UpdateKind::kSgd ? at::Tensor() : v.clone(), rule});
      }
      update(a);
      update_by_operators(b);
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_LT(distance(a[i].weight, b[i].weight), 1e-6) << static_cast<int>(kind) << variant << ' ' << i;
        EXPECT_TRUE(at::equal(a[i].copy, a[i].weight.to(at::kBFloat16)));
        EXPECT_TRUE(at::equal(b[i].copy, b[i].weight.to(at::kBFloat16)));
      }
    }
}

// Gradients of a scaled loss in float16, masters, clipping and a low copy in one step: the same as each by itself.
TEST(Optimizer, UnscalesClipsUpdatesMastersAndWritesLowWeightsAtOnce) {
  for (const at::ScalarType low : {at::kHalf, at::kBFloat16}) {
    const OptimizerOptions o = options(OptimizerType::kAdamW);
    std::vector<NamedParameter> fused = parameters(6), apart = parameters(6);
    for (NamedParameter& p : fused) {
      p.master = p.tensor.detach().clone();
      p.tensor = p.tensor.detach().to(low).set_requires_grad(true);
    }
    Optimizer one(o, fused), other(o, apart);
    for (int step = 0; step < 5; ++step) {
      set_gradients(fused, step, low);
      std::vector<at::Tensor> gradients;
      for (size_t i = 0; i < fused.size(); ++i)
        gradients.push_back(apart[i].tensor.mutable_grad() = fused[i].tensor.grad().to(at::kFloat) / 128);
      const UpdateResult result = one.step(1, {.loss_factor = 128, .max_norm = 1});
      const double norm = at::stack(at::_foreach_norm(gradients)).norm().item<double>();
      EXPECT_NEAR(result.norm, norm, 1e-5 * norm);
      for (at::Tensor& g : gradients) g.mul_(std::min(1.0, 1 / (norm + 1e-6)));
      other.step(1);
    }
    for (size_t i = 0; i < fused.size(); ++i) {
      EXPECT_LT(distance(fused[i].master, apart[i].tensor), 1e-6) << fused[i].name;
      EXPECT_TRUE(at::equal(fused[i].tensor.detach(), fused[i].master.to(low))) << fused[i].name;
    }
  }
}

// float16 alone, as opt level O3 has it: rounded once a step.
TEST(Optimizer, LowWeightsWithoutMastersAreRoundedOnceAStep) {
  std::vector<NamedParameter> p = parameters(7);
  for (NamedParameter& each : p) each.tensor = each.tensor.detach().to(at::kHalf).set_requires_grad(true);
  set_gradients(p, 1, at::kHalf);
  std::vector<at::Tensor> want;
  OptimizerOptions o = options(OptimizerType::kSgd);
  for (const NamedParameter& each : p) {
    const at::Tensor w = each.tensor.detach().to(at::kFloat);
    want.push_back((w - (each.tensor.grad().to(at::kFloat) + w * o.weight_decay) * o.lr).to(at::kHalf));
  }
  Optimizer(o, p).step(1);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(at::allclose(p[i].tensor, want[i], 1e-3, 0)) << p[i].name;
}

TEST(Optimizer, AnOverflowLeavesEverythingAsItIs) {
  for (const float bad : {INFINITY, -INFINITY, NAN})
    for (const bool clip : {false, true}) {
      std::vector<NamedParameter> p = parameters(8);
      Optimizer optimizer(options(OptimizerType::kAdamW), p);
      set_gradients(p, 0);
      optimizer.step(1);
      checkpoint::NamedTensors before, after;
      optimizer.save(before);
      std::vector<at::Tensor> weights;
      for (const NamedParameter& each : p) weights.push_back(each.tensor.detach().clone());
      set_gradients(p, 1);
      p[6].tensor.mutable_grad()[69'999] = bad;
      const GradientUse use{.max_norm = clip ? 1.0 : 0.0, .check = !clip};
      EXPECT_FALSE(optimizer.step(1, use).made);
      optimizer.save(after);
      for (const auto& [name, tensor] : before)
        EXPECT_TRUE(std::ranges::equal(after.at(name).bytes(), tensor.bytes())) << name;
      for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(at::equal(p[i].tensor, weights[i])) << i;
      p[6].tensor.mutable_grad()[69'999] = 0;
      EXPECT_TRUE(optimizer.step(1, use).made);
    }
}

TEST(Optimizer, GroupsHaveTheirOwnRateAndDecay) {
  OptimizerOptions o = options(OptimizerType::kSgd);
  o.groups = {{.name = "p1?", .lr_mult = 0, .decay_mult = 1}, {.name = "p1*", .lr_mult = 3, .decay_mult = 0.5}};
  std::vector<NamedParameter> p = parameters(9);
  std::vector<Plain> plain;
  for (const NamedParameter& each : p) plain.emplace_back(each.tensor);
  Optimizer optimizer(o, p);
  set_gradients(p, 0);
  for (size_t i = 0; i < p.size(); ++i) {
    const std::string& name = p[i].name;
    OptimizerOptions own = o;
    if (name == "p15" || name == "p16" || name == "p17") own.lr = 0;
    if (name == "p1" || name == "p1000" || name == "p1025") own.lr *= 3, own.weight_decay *= 0.5;
    sgd_step(plain[i], values(p[i].tensor.grad()), own, own.weight_decay);
  }
  optimizer.step(1);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_LT(distance(p[i].tensor, plain[i]), 1e-6) << p[i].name;
}

TEST(Optimizer, ResultsDependOnNoNumberOfThreads) {
  const int before = at::get_num_threads();
  std::vector<std::vector<NamedParameter>> runs;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    runs.push_back(parameters(10));
    Optimizer optimizer(options(OptimizerType::kLamb), runs.back());
    for (int step = 0; step < 3; ++step) {
      set_gradients(runs.back(), step);
      optimizer.step(1, {.max_norm = 1});
    }
  }
  at::set_num_threads(before);
  for (size_t i = 0; i < runs[0].size(); ++i)
    for (const size_t run : {1, 2}) EXPECT_TRUE(at::equal(runs[0][i].tensor, runs[run][i].tensor)) << runs[0][i].name;
}

TEST(Optimizer, GoesOnFromItsState) {
  for (const OptimizerType type : {OptimizerType::kSgd, OptimizerType::kAdamW, OptimizerType::kLamb}) {
    std::vector<NamedParameter> p = parameters(11), q = parameters(11);
    for (std::vector<NamedParameter>* list : {&p, &q})
      for (NamedParameter& each : *list) {
        each.master = each.tensor.detach().clone();
        each.tensor = each.tensor.detach().to(at::kHalf).set_requires_grad(true);
      }
    Optimizer whole(options(type), p), resumed(options(type), q);
    set_gradients(p, 0, at::kHalf);
    whole.step(1);
    checkpoint::NamedTensors state;
    whole.save(state);
    resumed.load(state);
    set_gradients(p, 1, at::kHalf);
    set_gradients(q, 1, at::kHalf);
    whole.step(1);
    resumed.step(1);
    for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(at::equal(p[i].master, q[i].master)) << p[i].name;
  }
}

}  // namespace
}  // namespace octet::train
