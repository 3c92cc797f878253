// The tensors of a step with random numbers in them, for tests that compute it in two places.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "train/cuda/update_kernels_cuda.h"

namespace octet::train::kernels::cuda {

constexpr Storage kTypes[] = {Storage::kFloat32, Storage::kBFloat16, Storage::kFloat16};

inline size_t bytes_of(Storage type) {
  return type == Storage::kFloat32 ? 4 : 2;
}

// How a tensor of a test looks.
struct Form {
  int64_t elements;
  Storage gradient, weight;
  bool has_copy;
  Storage copy;
  int64_t shift;  // elements that its arrays start behind a multiple of 256 bytes, each another number if not 0
};

// The arrays of all tensors of a step in one piece of memory, with room around each that no kernel may touch.
class Arena {
 public:
  // `scale`: of gradients and moments. The same seed gives the same numbers.
  Arena(const std::vector<Form>& forms, const std::vector<UpdateRule>& rules, float scale, uint32_t seed)
      : random_(seed) {
    size_t at = 0;
    const auto place = [&](int64_t elements, Storage type, int64_t shift) {
      const size_t start = at + static_cast<size_t>(shift) * bytes_of(type);
      at = (start + static_cast<size_t>(elements) * bytes_of(type) + 64 + 255) / 256 * 256;
      return start;
    };
    struct Starts {
      size_t gradient, weight, copy, first, second;
    };
    std::vector<Starts> starts;
    for (const Form& f : forms) {
      const auto shift = [&](int64_t more) { return f.shift == 0 ? 0 : f.shift + more; };
      starts.push_back({place(f.elements, f.gradient, shift(0)), place(f.elements, f.weight, shift(1)),
                        place(f.has_copy ? f.elements : 0, f.copy, shift(2)),
                        place(f.elements, Storage::kFloat32, shift(3)),
                        place(f.elements, Storage::kFloat32, shift(4))});
    }
    bytes.assign(at, 0xa5);
    for (size_t i = 0; i < forms.size(); ++i) {
      const Form& f = forms[i];
      const UpdateRule& rule = rules[i % rules.size()];
      UpdateArrays a;
      a.gradient = {&bytes[0] + starts[i].gradient, f.gradient};
      a.weight = {&bytes[0] + starts[i].weight, f.weight};
      if (f.has_copy) a.copy = {&bytes[0] + starts[i].copy, f.copy};
      if (rule.kind != UpdateKind::kSgd || rule.momentum != 0)
        a.first = reinterpret_cast<float*>(&bytes[0] + starts[i].first);
      if (rule.kind != UpdateKind::kSgd) a.second = reinterpret_cast<float*>(&bytes[0] + starts[i].second);
      fill(const_cast<void*>(a.gradient.data), f.gradient, f.elements, scale);
      fill(a.weight.data, f.weight, f.elements, 1);
      if (a.first) fill(a.first, Storage::kFloat32, f.elements, scale);
      if (a.second) fill(a.second, Storage::kFloat32, f.elements, scale * scale);
      for (int64_t k = 0; a.second && k < f.elements; ++k) a.second[k] = std::fabs(a.second[k]);
      tensors.push_back({a, rule, f.elements});
    }
  }

  // The tensors in another piece of memory.
  std::vector<DeviceUpdate> moved_to(void* base) const {
    const auto moved = [&](auto* p) {
      if (!p) return p;
      const ptrdiff_t offset = reinterpret_cast<const char*>(p) - reinterpret_cast<const char*>(&bytes[0]);
      return reinterpret_cast<decltype(p)>(static_cast<char*>(base) + offset);
    };
    std::vector<DeviceUpdate> out = tensors;
    for (DeviceUpdate& t : out) {
      t.arrays.gradient.data = moved(t.arrays.gradient.data);
      t.arrays.weight.data = moved(t.arrays.weight.data);
      t.arrays.copy.data = moved(t.arrays.copy.data);
      t.arrays.first = moved(t.arrays.first);
      t.arrays.second = moved(t.arrays.second);
    }
    return out;
  }

  std::vector<uint8_t> bytes;
  std::vector<DeviceUpdate> tensors;

 private:
  void fill(void* data, Storage type, int64_t n, float scale) {
    for (int64_t i = 0; i < n; ++i) {
      // Numbers of all sizes down to the subnormal ones, and zeros.
      float x = std::ldexp(normal_(random_), -static_cast<int>(random_() % 8)) * scale;
      if (random_() % 16 == 0) x = 0;
      if (random_() % 64 == 0) x *= 1e-38f;
      uint32_t bits;
      std::memcpy(&bits, &x, 4);
      if (type == Storage::kFloat32) {
        static_cast<uint32_t*>(data)[i] = bits;
      } else if (type == Storage::kBFloat16) {
        static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits >> 16);
      } else {  // any but infinities and NaN, below 32 times `scale` where that is 1
        const uint32_t any = static_cast<uint32_t>(random_());
        static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>((any & 0x83ffu) | (any >> 16) % 20 << 10);
      }
    }
  }

  std::mt19937 random_;
  std::normal_distribution<float> normal_;
};

}  // namespace octet::train::kernels::cuda
