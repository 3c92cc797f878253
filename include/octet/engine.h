// Octet's inference engine. Load a compiled network (NAME.octet, made by `octet compile`) and run it:
//
//   octet::Engine engine = octet::Engine::load("resnet18.octet");
//   octet::Context context = engine.create_context();        // memory and threads; one per concurrent caller
//   std::vector<float> image(engine.inputs()[0].size()), logits(engine.outputs()[0].size());
//   context.run(image, logits);                              // or run(inputs, outputs) with several tensors
//
// Every tensor is dense float32 in the order of its shape (NCHW for images). The batch is part of the shape: it is
// chosen when the network is compiled. Errors a person can mend are thrown as octet::Error with one clear sentence.
// This header needs C++17.
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace octet {

namespace engine {
struct Plan;
class Executor;
}  // namespace engine

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t size() const;  // number of elements
};

struct ContextOptions {
  int threads = 0;  // 0: as many CPUs as this process may use
  std::string isa;  // "scalar", "avx2", "avx_vnni", "avx512_vnni", "amx_int8"; empty: the best one of this CPU
};

// One step of the compiled network, as it runs.
struct LayerReport {
  std::string name;         // of the node in the source graph
  std::string op;           // "Conv+Add+Relu"
  std::string precision;    // "int8" or "fp32"
  std::string kernel;       // "conv avx512_vnni"
  std::string reason;       // why it is not int8, where that has a reason
  double microseconds = 0;  // mean time, from Context::profile
};

// Working memory and threads for one inference at a time. Allocates nothing after it was made.
class Context {
 public:
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  // One pointer per input and output, in the order of Engine::inputs() and outputs(). Outputs must not overlap inputs.
  void run(const std::vector<const float*>& inputs, const std::vector<float*>& outputs);
  // For networks with one input and one output; sizes are checked.
  void run(const std::vector<float>& input, std::vector<float>& output);

  int threads() const;
  // Runs `runs` times and reports the mean time of every step.
  std::vector<LayerReport> profile(const std::vector<const float*>& inputs, const std::vector<float*>& outputs,
                                   int runs);

 private:
  friend class Engine;
  explicit Context(std::unique_ptr<engine::Executor> executor);
  std::unique_ptr<engine::Executor> executor_;
};

class Engine {
 public:
  // Maps the file; loading takes milliseconds. octet::Error: no engine file, truncated, damaged, newer format.
  static Engine load(const std::string& path);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  Context create_context(const ContextOptions& options = {}) const;
  // The steps for an instruction set (empty: the best one of this CPU).
  std::vector<LayerReport> layers(const std::string& isa = {}) const;

 private:
  explicit Engine(std::shared_ptr<const engine::Plan> plan);
  std::shared_ptr<const engine::Plan> plan_;
  std::vector<TensorInfo> inputs_, outputs_;
};

}  // namespace octet
