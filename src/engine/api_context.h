// The inside of a Context of the installed C++ interface.
#pragma once
#include <octet/engine.h>

#include <memory>
#include <vector>

#include "engine/executor.h"

namespace octet {

struct Context::Impl {
  // A tensor of the caller in another type, and the floats that the engine has in its place.
  struct Converted {
    void* data = nullptr;  // nullptr: the caller's floats are used in place
    DataType type = DataType::kFloat32;
    std::vector<float> floats;
  };
  engine::Executor executor;
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  std::vector<char> is_image;
  std::vector<Converted> converted_inputs, converted_outputs;
  std::vector<std::vector<float>> between;  // what a program behind the plan reads
  bool has_run = false;

  Impl(std::shared_ptr<const engine::PreparedPlan> plan, const engine::ExecutorOptions& options);

  const engine::Plan& plan() const { return executor.plan(); }
  // Error where a program behind the plan makes them.
  void require_own_outputs() const;
  void check_index(int index, size_t count, const char* what) const;
  void bind_floats(size_t index, const float* data);
  void bind_output(size_t index, float* data);
  // Memory of another type; returns the floats in its place.
  static float* convert(Converted& tensor, const engine::Buffer& buffer, void* data, DataType type, const char* what);
  void run();
};

}  // namespace octet
