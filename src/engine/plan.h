// What an engine file says: buffers in one arena, constants in one blob, and a list of steps over them. A plan is made
// by lower/ or read from a file, checked by validate() (every size and index a kernel will trust), and never changed
// again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "engine/kernels/tensor.h"

namespace octet::dense {
struct Program;
}

namespace octet::engine {

enum class Layout {
  kCodes,        // u8, NHWC with channel pitch and halo; rank 4 or 2 (N x C is an image of one pixel)
  kFloatNhwc,    // float32 of rank 4, NHWC without gaps
  kFloatDense,   // float32 of any rank, row-major in the order of `shape`
  kIndexDense,   // int64, row-major (results of ArgMax)
  kSums,         // int32, row-major: sums of codes between two steps of one block
  kCodeRows,     // u8, rank 2 and more, row-major with a pitch between rows: a factor of a product of two activations
  kCodeColumns,  // the same with the last two axes swapped in memory
};
const char* layout_name(Layout layout);  // "codes", "nhwc", "dense", "index", "sums", "code_rows", "code_columns"
inline bool holds_codes(Layout layout) {
  return layout == Layout::kCodes || layout == Layout::kCodeRows || layout == Layout::kCodeColumns;
}

// One tensor in the arena, or in the caller's memory where it is an input or output of the plan.
struct Buffer {
  std::string name;  // of the value in the graph; buffers of one value in several layouts share it
  Layout layout = Layout::kFloatDense;
  std::vector<int64_t> shape;  // ONNX order: N, C, H, W for rank 4
  // Codes only. A stored byte u stands for the graph's code u - code_offset (128 where the graph's codes are signed)
  // and for the number (u - zero_point) * scale. code_min and code_max: the stored codes that can occur.
  float scale = 1;
  int32_t zero_point = 0, code_offset = 0, code_min = 0, code_max = 255;
  kernels::Halo halo;
  // The earlier buffer whose memory this one is: of floats the same bytes in another shape, of codes a range of the
  // channels from channel_offset on (a piece of a Concat) or every few rows and columns of the pixels (a phase of a
  // ConvTranspose), with the halo and the pitch of that buffer. Pixels that are apart are written by
  // convolutions, and read as their residual.
  int alias_of = -1;
  int64_t channel_offset = 0;
  struct Every {
    int64_t first = 0, step = 1;
  } rows, columns;
  bool skips_pixels() const { return rows.step != 1 || columns.step != 1; }
  int64_t offset = -1;  // in the arena, a multiple of 64; -1: in the caller's memory
  int64_t elements() const;
  int64_t bytes() const;  // halo and read slack included
  // Images: n, h, w, c. Rank 2 counts as one pixel.
  int64_t n() const { return shape[0]; }
  int64_t c() const { return shape[1]; }
  int64_t h() const { return shape.size() == 4 ? shape[2] : 1; }
  int64_t w() const { return shape.size() == 4 ? shape[3] : 1; }
  // What kernels see of kCodeRows and kCodeColumns: an image whose channels are the axis that lies together, and whose
  // columns are the other one of the last two; its rows are the axis before, its batch all axes before that.
  struct Rows {
    int64_t n = 1, h = 1, w = 1, c = 1;
  };
  Rows code_rows() const;
};

struct ConstantRef {
  int64_t offset = 0, bytes = 0;  // in the blob; the offset is a multiple of 64
};

// One piece of work. `kind` names a row of step_kinds(), which says what inputs, numbers and constants it takes.
struct Step {
  std::string kind;
  std::string name;                  // of the node in the graph that it does (the last one, where several were fused)
  std::string op;                    // what it does in terms of the graph: "Conv+Add+Relu"
  std::vector<int> inputs, outputs;  // buffers
  std::map<std::string, int64_t> ints;
  std::map<std::string, std::vector<int64_t>> lists;
  std::map<std::string, double> floats;  // finite; each holds a float32 exactly
  std::map<std::string, ConstantRef> constants;
  // How a convolution is computed: "NAME ISA", "NAME ISA/rows" or "NAME ISA/channels" (engine/tactics.h). Where the
  // executor's instruction set does not offer it, and where it is empty, the cost model decides.
  std::string tactic;
  bool int8 = false;  // computes on codes
  std::string
      reason;  // why a step of a quantized graph is not INT8; empty where it is, or where there is nothing to say
};

// Read-only bytes, 64-byte aligned, owned or mapped.
class ConstantBlob {
 public:
  virtual ~ConstantBlob() = default;
  virtual std::span<const std::byte> bytes() const = 0;
  // This part of bytes() will not be read soon: where it can be read again from a file, its memory is given back until
  // then.
  virtual void release(std::span<const std::byte> part) const {}
  // UserError when what stays in a file is no longer what was checked.
  virtual void check_unchanged() const {}
};
// A 64-byte aligned copy.
std::shared_ptr<const ConstantBlob> make_constant_blob(std::span<const std::byte> bytes);

struct Plan {
  std::string name;
  std::map<std::string, std::string> metadata;  // of the graph: stage, spec hash ...
  std::string isa;                              // it was compiled on; every CPU can run it
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<int> inputs, outputs;  // dense float buffers outside the arena, in the graph's order
  int64_t arena_bytes = 0;
  std::shared_ptr<const ConstantBlob> constants;
  // What makes the model's outputs from the plan's where sizes come up in a run (dense/program.h); usually nothing.
  std::shared_ptr<const dense::Program> program;
  ConstantRef program_bytes;   // the same as bytes, among the constants; of none where there is no program
  std::vector<Plan> profiles;  // the same network for other input sizes, over the same constants (engine/profiles.h)

  // The buffer whose memory this one is, or itself.
  int root(int id) const { return buffers[id].alias_of >= 0 ? buffers[id].alias_of : id; }
  // The codes of a buffer when the memory of its root is at `start`.
  kernels::QTensor code_view(int id, uint8_t* start) const;

  // The elements of a constant. UserError when it lies outside the blob or its size does not fit T.
  template <typename T>
  std::span<const T> constant(const ConstantRef& ref) const {
    const auto bytes = constant_bytes(ref, sizeof(T));
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  std::span<const std::byte> constant_bytes(const ConstantRef& ref, size_t element_bytes) const;
};

struct PlanLimits {
  int64_t arena_bytes = int64_t{1} << 36;
};

// Checks everything a kernel will trust. UserError (one sentence naming the step or buffer) for a plan that cannot run.
void validate(const Plan& plan, const PlanLimits& limits = {});

// Places all buffers of the plan in one arena by their lifetimes and sets offsets and arena_bytes. A buffer lives from
// the first step that writes it to the last that reads it, so steps must be in their final order.
void plan_memory(Plan& plan);

// One line per step for reports. `kernel` is what runs on `isa` ("conv avx512_vnni").
struct LayerInfo {
  std::string name, op, precision, kernel, reason;  // precision: "int8" or "fp32"
};
std::vector<LayerInfo> layer_list(const Plan& plan, Isa isa);

}  // namespace octet::engine
