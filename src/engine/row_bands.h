// Fusion across layers: steps whose tensors are too large for a core's cache are done together, a band of rows after
// the other, and what lies between them only exists as the rows of the current band, in a small memory of each thread.
//
// A thread makes its share of the rows of every tensor that leaves the group, and whatever rows of the others these
// need; so threads do not wait for each other within a group, and the few rows that two shares need are made twice.
// Rows that the next band needs again are moved to the front of the memory.
#pragma once
#include <span>
#include <vector>

#include "base/aligned_memory.h"
#include "engine/plan.h"
#include "engine/step_kinds.h"

namespace octet::engine {

struct RowBandOptions {
  int threads = 1;
  // Tensors of which a thread's share is larger are kept in bands; 0: all that can be.
  int64_t large_bytes = 0;
  // What the bands of a thread may take; a group that needs more even with the smallest bands is not made.
  int64_t memory_bytes = 0;
  // The same where memory takes a good part of the time: for tensors that a depthwise convolution writes, or that
  // nothing else reads, and for codes fresh from floats, with a quarter of the limit (as with large_bytes). 0: as the
  // others.
  int64_t thin_large_bytes = 0, thin_memory_bytes = 0;
  // Small tensors about a depthwise convolution are kept too, whole shares at a time, where they take at most this: a
  // thread that makes the rows it needs itself neither waits for the others nor takes rows out of their caches, which
  // costs four times as much where the processors do not share a third-level cache. 0: they are not.
  int64_t private_memory_bytes = 0;
};
// For the second-level cache of this machine; kernels want the rest of it for weights and what they read and write.
RowBandOptions row_band_options(int threads);

// One thing that a thread does in its turn.
struct BandPiece {
  enum class What {
    kMove,    // `kept` starts with rows.begin from now on; its rows [rows.begin, rows.end) are there already, behind
    kBorder,  // rows of `kept` that are halo: zero points
    kRun,     // rows of the output of `step`
  };
  What what = What::kRun;
  size_t step = 0;
  int kept = 0;  // index in BandedSteps::kept
  kernels::Range rows;
};

struct BandedSteps {
  struct Kept {
    int buffer = 0;
    int64_t rows = 0;    // at most, at a time
    int64_t offset = 0;  // in the memory of a thread, a multiple of 64
  };
  size_t first = 0, last = 0;                  // steps
  std::vector<Kept> kept;                      // tensors in bands
  std::vector<std::vector<BandPiece>> pieces;  // of each thread, in order
  int64_t memory_bytes = 0;                    // of each thread
};

// Groups in order that do not overlap. The tensors of a group that others read are written as the steps alone would.
std::vector<BandedSteps> find_banded_steps(const Plan& plan, std::span<const PreparedStep> steps,
                                           const RowBandOptions& options);

// Where the buffers lie in an arena for these groups: like plan_memory(), but what a group reads and writes is needed
// all the time it runs, and a tensor in bands has no place.
struct ArenaLayout {
  std::vector<int64_t> offsets;  // by buffer; -1: none
  int64_t bytes = 0;
};
ArenaLayout arena_layout(const Plan& plan, std::span<const BandedSteps> groups);

// The memory of one thread for one group.
class BandMemory {
 public:
  // `memory` of the executor.
  BandMemory(const Plan& plan, const BandedSteps& group, const Memory& memory);
  // For a run with the addresses of `memory`: views of everything, those of the tensors in bands as of the latest
  // piece.
  const Memory& begin(const Memory& memory);
  // A piece that is not kRun.
  void arrange(const BandPiece& piece);

 private:
  const Plan& plan_;
  const BandedSteps& group_;
  AlignedMemory bytes_;
  Memory memory_;
  std::vector<int64_t> first_rows_;  // by kept tensor: the row at the front
};

}  // namespace octet::engine
