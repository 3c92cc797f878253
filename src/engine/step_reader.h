// Reads the numbers and constants of a Step with checks; every refusal names the step.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/plan.h"
#include "engine/step_kinds.h"

namespace octet::engine {

// No number of elements in a plan is larger.
inline constexpr int64_t kMaxExtent = int64_t{1} << 40;

class StepReader {
 public:
  StepReader(const Plan& plan, const Step& step) : plan_(plan), step_(step) {}

  template <typename... Args>
  void check(bool ok, const Args&... args) const {
    if (!ok) fail("step '", step_.name, "' (", step_.kind, "): ", args...);
  }
  // `count` buffers, or at least that many with `more`.
  void arity(size_t inputs, size_t outputs, bool more_inputs = false) const;
  int in(size_t i) const { return step_.inputs[i]; }
  int out(size_t i = 0) const { return step_.outputs[i]; }
  const Buffer& in_buffer(size_t i) const { return plan_.buffers[in(i)]; }
  const Buffer& out_buffer(size_t i = 0) const { return plan_.buffers[out(i)]; }
  const Buffer& root(int id) const { return plan_.buffers[plan_.root(id)]; }
  // What kernels will see of a buffer of codes, but for its address.
  kernels::QTensor codes_view(int id) const { return plan_.code_view(id, reinterpret_cast<uint8_t*>(uintptr_t{4096})); }
  // The buffer, which must have this layout.
  const Buffer& codes_in(size_t i) const {
    const Buffer& b = expect(in_buffer(i), Layout::kCodes);
    check(!b.skips_pixels(), "'", b.name, "' skips pixels, which steps write only");
    // Weights and kernels know small pixels by their number of channels.
    check(kernels::channel_pitch(b.c()) == kernels::channel_pitch(root(in(i)).c()) ||
              kernels::channel_pitch(b.c()) >= kernels::kChannelBlock,
          "'", b.name, "' has few channels of many, which steps write only");
    return b;
  }
  const Buffer& codes_out(size_t i = 0) const {
    check(!out_buffer(i).skips_pixels(), "'", out_buffer(i).name, "' skips pixels, which only convolutions write");
    return expect(out_buffer(i), Layout::kCodes);
  }
  // A float buffer of either layout.
  const Buffer& float_in(size_t i) const { return expect_float(in_buffer(i)); }
  const Buffer& float_out(size_t i = 0) const { return expect_float(out_buffer(i)); }

  bool has(const std::string& key) const { return step_.ints.count(key) > 0; }
  // A number in [low, high]; without a fallback it must be there.
  int64_t integer(const std::string& key, int64_t low, int64_t high) const;
  int64_t integer_or(const std::string& key, int64_t fallback, int64_t low, int64_t high) const;
  // A list of `length` numbers in [low, high].
  std::vector<int64_t> list(const std::string& key, size_t length, int64_t low, int64_t high) const;
  float real(const std::string& key) const;
  float real_or(const std::string& key, float fallback) const;
  float positive(const std::string& key) const;

  // A walk over `dims` with these strides from `offset` must stay within `size` elements.
  void check_walk(const std::string& what, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                  int64_t offset, int64_t size) const;

  bool has_constant(const std::string& key) const { return step_.constants.count(key) > 0; }
  // Exactly `count` elements.
  template <typename T>
  std::span<const T> constant(const std::string& key, int64_t count) const {
    const auto values = plan_.constant<T>(reference(key));
    check(static_cast<int64_t>(values.size()) == count, "constant '", key, "' has ", values.size(),
          " elements, expected ", count);
    return values;
  }
  // The same, all finite.
  std::span<const float> finite_constant(const std::string& key, int64_t count) const;

 private:
  const Buffer& expect(const Buffer& b, Layout layout) const;
  const Buffer& expect_float(const Buffer& b) const;
  const ConstantRef& reference(const std::string& key) const;

  const Plan& plan_;
  const Step& step_;
};

}  // namespace octet::engine
