// The table of step kinds: for each, how a Step becomes a call of a kernel. One row per kind; a new kernel adds a row.
// Preparing a step checks every number that the kernel will trust, so it is also the validation of a plan.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/kernels/kernel_table.h"
#include "engine/plan.h"

namespace octet::engine {

// Where the buffers of a plan lie during a run, by buffer id.
struct Memory {
  std::vector<kernels::QTensor> codes;  // views of code buffers
  std::vector<void*> data;              // first byte of every buffer; the caller's for inputs and outputs

  std::byte* scratch = nullptr;  // scratch_bytes for each thread, one behind the other
  int64_t scratch_bytes = 0;     // a multiple of 64
  std::byte* kept = nullptr;     // kept_bytes for each thread: what steps keep from run to run
  int64_t kept_bytes = 0;        // a multiple of 64

  std::byte* scratch_of(int part) const { return scratch + part * scratch_bytes; }
  std::byte* kept_of(int part) const { return kept + part * kept_bytes; }
  const kernels::QTensor& q(int id) const { return codes[id]; }
  float* f(int id) const { return static_cast<float*>(data[id]); }
};

// Does the share of thread `part` of `parts`.
using StepFunction = std::function<void(const Memory& memory, int part, int parts)>;

// Weights in the order of the kernel that runs, made once for all executors of a prepared plan.
struct DerivedWeights {
  int64_t bytes = 0;
  std::function<void(std::byte*)> make;
  const std::byte* data = nullptr;  // set by PreparedPlan before the step runs
};

// What a step keeps from run to run, for every thread of a context; zero before the first run.
struct KeptMemory {
  int64_t bytes = 0;
  int64_t offset = 0;  // in Memory::kept_of(), set by PreparedPlan before the step runs
};

// The weights that each thread reads first in a step.
using FirstWeights = std::function<kernels::ReadSoon(int part, int parts)>;

// Those of the next step that has some, for steps that fetch them.
struct NextWeights {
  FirstWeights of_share;  // set by PreparedPlan before the step runs; may be empty
};

// The same for any rows of the output, counted over n * h.
struct RowWork {
  std::function<void(const Memory& memory, int part, kernels::Range rows)> run;
  // Row y of the output reads rows y * stride - pad to y * stride - pad + extent - 1 of the first input, as far as
  // these exist, and row y of the others.
  int64_t stride = 1, extent = 1, pad = 0;
  int64_t at_once = 1;  // rows of the output that are made together (ConvTactic::rows_at_once)
};

// Shows codes that a step makes on its way and keeps to itself, for those who look into it after it has run on one
// thread: for k = 0, 1 ... from the last to the first, those of all images, each of one pixel.
using InnerCodes = std::function<void(
    const Memory& memory, const std::function<void(size_t k, int64_t images, std::span<const uint8_t> codes)>& show)>;

struct PreparedStep {
  StepFunction run;
  Isa isa = Isa::kScalar;                   // the instruction set of the kernel that really runs
  std::string kernel;                       // which one, where there are several: "winograd4x4"
  std::shared_ptr<DerivedWeights> derived;  // or none
  int64_t scratch_bytes = 0;                // of working memory that every thread needs
  std::shared_ptr<KeptMemory> kept;         // or none
  FirstWeights first_weights;               // or none
  std::shared_ptr<NextWeights> next;        // or none
  std::optional<RowWork> rows;              // where `run` shares the rows and needs no others
  InnerCodes inner;                         // or nothing
};

struct StepKind {
  const char* name;
  PreparedStep (*prepare)(const Plan& plan, const Step& step, const kernels::KernelTable& kernels);
};
std::span<const StepKind> int8_step_kinds();
std::span<const StepKind> float_step_kinds();

// UserError naming the step when its kind is unknown or anything in it does not fit.
PreparedStep prepare_step(const Plan& plan, const Step& step, const kernels::KernelTable& kernels);

// The share of `part` of `parts` in `work` units.
kernels::Range share_of(int64_t work, int part, int parts);

}  // namespace octet::engine
