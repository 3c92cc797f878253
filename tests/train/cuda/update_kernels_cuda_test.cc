// The CUDA kernels of the optimizers against those of the CPU: the same bits. Links neither LibTorch nor anything else
// that a machine with a GPU may lack.
#include "train/cuda/update_kernels_cuda.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/cuda/update_arena.h"
#include "train/update_formulas.h"

namespace octet::train::kernels::cuda {
namespace {

void check(cudaError_t error) {
  ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

// Device memory; ASSERT is for void functions, and a failed allocation fails what follows.
struct DeviceBytes {
  explicit DeviceBytes(size_t bytes) { check(cudaMalloc(&data, bytes)); }
  ~DeviceBytes() { cudaFree(data); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void* data = nullptr;
};

void update_on_cpu(const std::vector<DeviceUpdate>& tensors) {
  const UpdateTable& table = update_table();
  for (const DeviceUpdate& t : tensors) {
    if (t.rule.kind != UpdateKind::kLamb) {
      table.update(t.arrays, t.rule, 0, t.elements);
      continue;
    }
    const LambNorms norms = table.lamb_moments(t.arrays, t.rule, 0, t.elements);
    const float rate = lamb_rate(t.rule, std::sqrt(norms.weight), std::sqrt(norms.update));
    table.lamb_update(t.arrays, t.rule, rate, 0, t.elements);
  }
}

// What the device leaves of the arena's bytes.
std::vector<uint8_t> update_on_device(const Arena& arena) {
  const DeviceBytes memory(arena.bytes.size()), workspace(workspace_bytes(arena.tensors));
  std::vector<uint8_t> out(arena.bytes.size());
  check(cudaMemcpy(memory.data, arena.bytes.data(), out.size(), cudaMemcpyHostToDevice));
  check(cudaMemset(workspace.data, 0xff, workspace_bytes(arena.tensors)));
  update(arena.moved_to(memory.data), workspace.data, {});
  check(cudaMemcpy(out.data(), memory.data, out.size(), cudaMemcpyDeviceToHost));
  return out;
}

double square_sum_on_device(const Arena& arena, float factor) {
  const DeviceBytes memory(arena.bytes.size()), workspace(workspace_bytes(arena.tensors));
  check(cudaMemcpy(memory.data, arena.bytes.data(), arena.bytes.size(), cudaMemcpyHostToDevice));
  check(cudaMemset(workspace.data, 0xff, workspace_bytes(arena.tensors)));
  return square_sum(arena.moved_to(memory.data), workspace.data, {}, factor);
}

// The first array that differs, for the message; the bytes between arrays belong to the one before them.
std::string difference(const Arena& arena, const std::vector<uint8_t>& got, const std::vector<uint8_t>& want) {
  size_t at = 0;
  while (at < got.size() && got[at] == want[at]) ++at;
  if (at == got.size()) return "";
  std::string found = "before all arrays";
  for (size_t i = 0; i < arena.tensors.size(); ++i) {
    const UpdateArrays& a = arena.tensors[i].arrays;
    const auto look = [&](const void* p, Storage type, const char* name) {
      const size_t start = static_cast<size_t>(static_cast<const uint8_t*>(p) - arena.bytes.data());
      if (p && start <= at)
        found = str("tensor ", i, " of ", arena.tensors[i].elements, ", ", name, ", element ",
                    (at - start) / bytes_of(type), " of type ", static_cast<int>(type));
    };
    look(a.gradient.data, a.gradient.type, "gradient");
    look(a.weight.data, a.weight.type, "weight");
    look(a.copy.data, a.copy.type, "copy");
    look(a.first, Storage::kFloat32, "first");
    look(a.second, Storage::kFloat32, "second");
  }
  return found;
}

void expect_bits_of_cpu(const std::vector<Form>& forms, const std::vector<UpdateRule>& rules, float scale,
                        uint32_t seed, const std::string& what) {
  Arena arena(forms, rules, scale, seed);
  const std::vector<uint8_t> before = arena.bytes, got = update_on_device(arena), again = update_on_device(arena);
  EXPECT_EQ(got, again) << what << ": two runs differ";
  update_on_cpu(arena.tensors);
  EXPECT_NE(before, arena.bytes) << what;
  EXPECT_EQ(difference(arena, got, arena.bytes), "") << what;
}

std::vector<Form> all_forms() {
  const int64_t sizes[] = {1, 7, 1023, 4096, 65537, 3, 4095, 4097, 30000, 2, 12288, 5};
  std::vector<Form> forms;
  size_t i = 0;
  for (const Storage gradient : kTypes)
    for (const Storage weight : kTypes)
      for (const int copy : {-1, 0, 1, 2}) {
        const Storage copy_type = copy < 0 ? Storage::kFloat32 : kTypes[copy];
        // Five numbers of shifts and twelve sizes: every combination of types meets two of each.
        for (int k = 0; k < 2; ++k, ++i)
          forms.push_back(
              {sizes[i * 5 % std::size(sizes)], gradient, weight, copy >= 0, copy_type, static_cast<int64_t>(i % 5)});
      }
  return forms;
}

UpdateRule rule_of(UpdateKind kind) {
  UpdateRule rule;
  rule.kind = kind;
  rule.gradient_factor = 1.0f / 128;
  rule.rate = 0.011f;
  rule.decay = 0.013f;
  if (kind == UpdateKind::kSgd) {
    rule.momentum = 0.9f;
    return rule;
  }
  rule.beta2 = 0.999f;
  rule.gain1 = 0.1f;
  rule.gain2 = 0.001f;
  rule.eps = 1e-8f;
  rule.correction1 = 1.69f;
  rule.correction2 = 13.3f;
  return rule;
}

struct NamedRule {
  std::string name;
  UpdateRule rule;
};

std::vector<NamedRule> all_rules() {
  std::vector<NamedRule> rules;
  const auto add = [&](const char* name, UpdateKind kind, auto change) {
    rules.push_back({name, rule_of(kind)});
    change(rules.back().rule);
  };
  const UpdateKind sgd = UpdateKind::kSgd, adam = UpdateKind::kAdam, lamb = UpdateKind::kLamb;
  add("SGD", sgd, [](UpdateRule& r) { r.momentum = 0; });
  add("SGD without decay", sgd, [](UpdateRule& r) { r.momentum = r.decay = 0; });
  add("SGD, momentum", sgd, [](UpdateRule& r) {});
  add("SGD, nesterov", sgd, [](UpdateRule& r) { r.nesterov = true; });
  add("SGD, decay last", sgd, [](UpdateRule& r) { r.decay_last = true; });
  add("SGD, nesterov, decay last", sgd, [](UpdateRule& r) { r.nesterov = r.decay_last = true; });
  add("AdamW", adam, [](UpdateRule& r) {});
  add("AdamW without bias correction", adam, [](UpdateRule& r) {
    r.step = 0;
    r.correction1 = r.correction2 = 1;
  });
  add("Adam, L2", adam, [](UpdateRule& r) { r.decoupled = false; });
  add("Adam, L2, without decay", adam, [](UpdateRule& r) {
    r.decoupled = false;
    r.decay = 0;
  });
  add("LAMB", lamb, [](UpdateRule& r) {});
  add("LAMB without decay", lamb, [](UpdateRule& r) { r.decay = 0; });
  add("LAMB without decay, always adapted", lamb, [](UpdateRule& r) {
    r.decay = 0;
    r.always_adapt = true;
  });
  return rules;
}

TEST(UpdateKernelsWithoutDevice, SayWhatIsWrong) {
  EXPECT_FALSE(runs_on(-1));
  EXPECT_FALSE(runs_on(1000));
  try {
    update({}, nullptr, {.device = 1000});
    FAIL() << "there is no such device";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("CUDA device 1000: "), std::string::npos) << error.what();
  }
}

class UpdateKernelsCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_on(0)) GTEST_SKIP() << "there is no CUDA device 0 that the kernels were built for";
  }
};

TEST_F(UpdateKernelsCuda, GiveTheBitsOfTheCpu) {
  uint32_t seed = 1;
  for (const NamedRule& r : all_rules()) expect_bits_of_cpu(all_forms(), {r.rule}, 1, seed++, r.name);
}

// Squares and quotients that are subnormal; what is not finite is not asked for.
TEST_F(UpdateKernelsCuda, GiveTheBitsOfTheCpuWithTinyNumbers) {
  std::vector<Form> forms = all_forms();
  std::erase_if(forms, [](const Form& f) { return f.gradient == Storage::kFloat16; });
  uint32_t seed = 100;
  for (const NamedRule& r : all_rules()) expect_bits_of_cpu(forms, {r.rule}, 3e-20f, seed++, r.name);
}

TEST_F(UpdateKernelsCuda, TakeManyTensorsOfDifferentRules) {
  std::vector<Form> forms;
  for (int64_t i = 0; i < 2500; ++i) {
    const bool masters = i / 7 % 2 == 0;
    forms.push_back({i % 61, masters ? Storage::kFloat16 : Storage::kFloat32, Storage::kFloat32, masters,
                     Storage::kFloat16, i % 3});
  }
  std::vector<UpdateRule> rules;
  for (size_t i = 0; i < forms.size(); ++i) {
    rules.push_back(rule_of(i < 1100 ? UpdateKind::kAdam : i < 1800 ? UpdateKind::kSgd : UpdateKind::kLamb));
    rules.back().rate += static_cast<float>(i) * 1e-5f;
    if (i % 4 == 0) rules.back().decay = 0;
    if (i == 500) rules.back().eps = 1e-6f;
  }
  expect_bits_of_cpu(forms, rules, 1, 5, "many tensors");
  Arena arena(forms, rules, 1, 6);
  double want = 0;
  for (const DeviceUpdate& t : arena.tensors) want += update_table().square_sum(t.arrays.gradient, 0.5f, 0, t.elements);
  EXPECT_NEAR(square_sum_on_device(arena, 0.5f), want, 1e-12 * want);
}

// A norm of 0: the rate is not adapted, and nothing is divided by it.
TEST_F(UpdateKernelsCuda, LambTakesZeros) {
  const std::vector<Form> forms(3, {5000, Storage::kFloat32, Storage::kFloat32, true, Storage::kBFloat16, 0});
  UpdateRule rule = rule_of(UpdateKind::kLamb);
  rule.always_adapt = true;
  Arena arena(forms, {rule}, 1, 7);
  const auto clear = [](void* data) { std::memset(data, 0, 5000 * 4); };
  clear(arena.tensors[0].arrays.weight.data);  // no weights
  for (const size_t i : {1, 2}) {              // no step, but that of the decay
    clear(const_cast<void*>(arena.tensors[i].arrays.gradient.data));
    clear(arena.tensors[i].arrays.first);
    clear(arena.tensors[i].arrays.second);
  }
  arena.tensors[1].rule.decay = 0;
  const std::vector<uint8_t> got = update_on_device(arena);
  update_on_cpu(arena.tensors);
  EXPECT_EQ(difference(arena, got, arena.bytes), "");
}

TEST_F(UpdateKernelsCuda, SumSquaresAndFindWhatIsNotFinite) {
  const UpdateRule rule = rule_of(UpdateKind::kSgd);
  const uint32_t infinities[] = {0x7f800000u, 0x7f80u, 0x7c00u}, nans[] = {0x7fc00000u, 0x7fc0u, 0xfe00u};
  for (const size_t type : {0, 1, 2}) {
    std::vector<Form> forms;
    for (const int64_t n : {1, 300001, 7, 16384, 16385, 65537})
      forms.push_back({n, kTypes[type], Storage::kFloat32, false, Storage::kFloat32, n % 4});
    const Arena arena(forms, {rule}, 1, 8);
    double want = 0;
    for (const DeviceUpdate& t : arena.tensors)
      want += update_table().square_sum(t.arrays.gradient, 1.0f / 3, 0, t.elements);
    const double got = square_sum_on_device(arena, 1.0f / 3);
    EXPECT_NEAR(got, want, 1e-12 * want);
    EXPECT_EQ(got, square_sum_on_device(arena, 1.0f / 3)) << "two runs differ";
    for (const uint32_t special : {infinities[type], nans[type]})
      for (const auto& [tensor, element] : {std::pair<size_t, size_t>{0, 0}, {1, 300000}, {1, 151234}, {4, 16384}}) {
        Arena bad(forms, {rule}, 1, 8);
        uint8_t* gradient = static_cast<uint8_t*>(const_cast<void*>(bad.tensors[tensor].arrays.gradient.data));
        std::memcpy(gradient + element * bytes_of(kTypes[type]), &special, bytes_of(kTypes[type]));
        EXPECT_FALSE(std::isfinite(square_sum_on_device(bad, 1.0f / 3))) << type << ' ' << tensor << ' ' << element;
      }
  }
}

TEST_F(UpdateKernelsCuda, SumNothing) {
  const DeviceBytes workspace(workspace_bytes({}));
  EXPECT_EQ(square_sum({}, workspace.data, {}, 1), 0);
  update({}, workspace.data, {});
}

// Every number of a low type, and float32 of all sizes rounded to it; where the CPU has NaN there is one, of any bits.
TEST_F(UpdateKernelsCuda, ReadAndRoundLowTypesAsTheCpu) {
  UpdateRule rule;
  rule.rate = -1;  // w = 0 + g
  std::mt19937 random(9);
  for (const Storage low : {Storage::kBFloat16, Storage::kFloat16})
    for (const bool reads : {true, false}) {
      Arena arena({{1 << 18, reads ? low : Storage::kFloat32, Storage::kFloat32, true, low, 0}}, {rule}, 1, 10);
      const UpdateArrays& a = arena.tensors[0].arrays;
      std::memset(a.weight.data, 0, size_t{4} << 18);
      for (uint32_t i = 0; i < 1u << 18; ++i) {
        const uint32_t any = static_cast<uint32_t>(random()), bits = reads ? i & 0xffffu : i % 2 ? any : any & ~0xfffu;
        std::memcpy(static_cast<uint8_t*>(const_cast<void*>(a.gradient.data)) + i * (reads ? 2 : 4), &bits,
                    reads ? 2 : 4);
      }
      const std::vector<uint8_t> got = update_on_device(arena);
      update_on_cpu(arena.tensors);
      const auto at = [&](const void* p) { return &got[0] + (static_cast<const uint8_t*>(p) - &arena.bytes[0]); };
      const float *want_weight = static_cast<const float*>(a.weight.data),
                  *weight = reinterpret_cast<const float*>(at(a.weight.data));
      const uint16_t *want_copy = static_cast<const uint16_t*>(a.copy.data),
                     *copy = reinterpret_cast<const uint16_t*>(at(a.copy.data));
      const uint16_t infinity = low == Storage::kBFloat16 ? 0x7f80 : 0x7c00;
      for (size_t i = 0; i < size_t{1} << 18; ++i) {
        if (std::isnan(want_weight[i])) {
          ASSERT_TRUE(std::isnan(weight[i]) && (copy[i] & 0x7fff) > infinity) << i;
          continue;
        }
        ASSERT_EQ(std::memcmp(&weight[i], &want_weight[i], 4), 0) << weight[i] << ' ' << want_weight[i];
        ASSERT_EQ(copy[i], want_copy[i]) << want_weight[i];
      }
    }
}

}  // namespace
}  // namespace octet::train::kernels::cuda
