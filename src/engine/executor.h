// Runs a plan: one arena, one team of threads, no allocation after construction.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "base/cpu_features.h"
#include "dense/run.h"
#include "engine/image_input.h"
#include "engine/plan.h"
#include "engine/prepared_plan.h"
#include "engine/row_bands.h"
#include "engine/step_kinds.h"
#include "engine/thread_team.h"

namespace octet::engine {

struct ExecutorOptions {
  int threads = 0;  // 0: one per CPU of team.cpus, or available_cpus()
  Isa isa = default_isa();
  TeamOptions team;  // `threads` in it is not used
  // Which steps run together, band by band (engine/row_bands.h); nothing: as this machine's cache suggests. `threads`
  // in it is not used.
  std::optional<RowBandOptions> row_bands;
  dense::RunOptions program;  // of a program behind the plan; `threads` in it is not used
};

// The work on one part of a step, in nanoseconds of std::chrono::steady_clock.
struct StepSpan {
  int64_t start = 0, end = 0;
};

// The output of a step in the words of the graph: elements in ONNX order (NCHW for rank 4).
struct TensorDump {
  std::string name;
  std::vector<int64_t> shape;
  bool is_codes = false;
  // The graph's codes (signed where its quantizer is); number = (code - zero_point) * scale.
  std::vector<int32_t> codes;
  std::vector<float> values;  // where the tensor is float
  float scale = 1;
  int32_t zero_point = 0;
  bool on_lines = false;  // codes of a function of sums that is on lines: within kernels::kLineError of a code
  // Codes that a step keeps to itself: TENSOR/gate/0, TENSOR/gate/1 ... from the last to the first of the small layers
  // by which a squeeze-and-excite makes TENSOR, and last the mean. They are as the engine has them, 128 more than the
  // graph's where the quantizer is signed, and scale and zero point are not known here.
  bool inner = false;
};

// One caller at a time; several executors may share a plan.
class Executor {
 public:
  // `plan` has passed validate(). UserError when memory or threads cannot be had or this CPU lacks the instruction set.
  explicit Executor(std::shared_ptr<const Plan> plan, const ExecutorOptions& options = {});
  // Shares kernels and weights with every other executor of `prepared`, which decides the instruction set, not
  // `options`.
  explicit Executor(std::shared_ptr<const PreparedPlan> prepared, const ExecutorOptions& options = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const { return *plan_; }
  int threads() const { return team_.threads(); }
  Isa isa() const { return prepared_->isa(); }
  // Steps that run() does together.
  const std::vector<BandedSteps>& banded_steps() const { return groups_; }

  // Dense float tensors in the order of plan().inputs and outputs; they must not overlap.
  // A program behind the plan then makes results() of those outputs. UserError where it cannot, as for want of memory.
  void run(const float* const* inputs, float* const* outputs);
  // What a program behind the plan made in the latest run, in its order; without one nothing.
  const std::vector<dense::Tensor>& results() const { return results_; }
  int64_t program_nanoseconds() const { return program_nanoseconds_; }  // of the following runs, as step_nanoseconds()

  // Input `index` comes as pixels from now on, whatever run() is given; nullptr: as floats again.
  void set_image(size_t index, std::unique_ptr<ImageInput> image);

  // Nanoseconds of every step of the following runs, summed; one entry per step: of the part that took longest, without
  // waiting for other threads. Costs about 50 ns a step.
  void set_profiling(bool on);
  const std::vector<int64_t>& step_nanoseconds() const { return step_nanoseconds_; }
  // What is in none of them: threads that wait for each other, or for a CPU between two steps.
  int64_t waiting_nanoseconds() const { return waiting_nanoseconds_; }
  void clear_profile();

  // Keeps when every part of every step was worked on in the latest run, for step_spans(). Costs about 50 ns a step.
  void set_tracing(bool on);
  // Of the latest run: step s of part p is entry p * steps + s; nothing where a run had fewer parts. Part p is that of
  // thread p unless another one took it. Waiting for the others is in no span. Steps that run together in bands are
  // shown one after the other, each as long as all its bands took.
  const std::vector<StepSpan>& step_spans() const { return spans_; }

  // Runs and copies every tensor of that name (a quantized tensor may also exist as floats); all of them if `names` is
  // empty. UserError when the plan has no tensor of a name (fusion removes those between the nodes of one step).
  std::vector<TensorDump> run_and_dump(const float* const* inputs, float* const* outputs,
                                       const std::vector<std::string>& names = {});

  // Runs step by step and shows the buffers `watched` of the plan, which hold floats, each once all of it is there: its
  // index in `watched` and its values, in the order of its layout. Later steps read what they are then, so that they
  // may be changed; the next step may use their memory for others.
  using FloatWatcher = std::function<void(size_t index, std::span<float> values)>;
  void run_and_show(const float* const* inputs, float* const* outputs, std::span<const int> watched,
                    const FloatWatcher& show);

 private:
  void bind(const float* const* inputs, float* const* outputs);
  void run_program(const float* const* outputs);
  void fill_halos(size_t step, int part, int parts);
  void run_step(size_t index, int part, int parts);
  void run_banded(size_t group, int part);
  // What the threads do between two meetings.
  struct Stage {
    size_t first = 0;  // step
    int group = -1;    // of groups_; -1: one step alone
  };
  void run_stage(const Stage& stage, int part, int parts);
  void choose_bands();
  void keep_spans();
  void add_to_profile(int64_t run_nanoseconds);
  struct Arena {
    AlignedMemory bytes;  // behind the buffers: what the threads keep, and their scratch
    Memory memory;
  };
  Arena make_arena(const ArenaLayout& layout) const;
  TensorDump dump(int buffer) const;
  // While it lives, every tensor has a place in the arena: those in bands are gone as soon as they are used.
  class WholeArena;

  std::shared_ptr<const PreparedPlan> prepared_;
  const Plan* plan_;
  std::span<const PreparedStep> steps_;
  RowBandOptions band_options_;
  Arena arena_;
  struct HaloFill {
    int buffer;
    int64_t rows;
  };
  std::vector<std::vector<HaloFill>> halo_fills_;  // per step
  std::vector<BandedSteps> groups_;
  std::vector<std::vector<BandMemory>> band_memory_;  // per group and thread
  std::vector<std::unique_ptr<ImageInput>> images_;   // per input; nullptr: floats
  std::vector<StepFunction> image_steps_;             // per step: what runs instead, or nothing; empty without images
  std::vector<Stage> stages_;
  bool profiling_ = false, tracing_ = false;
  std::vector<int64_t> step_nanoseconds_;
  int64_t waiting_nanoseconds_ = 0;
  std::vector<StepSpan> spans_;            // by part and step; empty: nobody wants them
  std::vector<int64_t> band_nanoseconds_;  // by part and step, of the latest run, for those in bands
  ThreadTeam team_;
  ThreadTeam::Work work_, work_on_current_;
  size_t current_step_ = 0;
  dense::RunOptions program_options_;
  int64_t program_nanoseconds_ = 0;
  std::vector<dense::Tensor> results_;
};

}  // namespace octet::engine
