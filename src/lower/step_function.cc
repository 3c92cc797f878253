#include "lower/step_function.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/code_function.h"

namespace octet::lower {
namespace {

constexpr int kCells = 256, kPlaces = 256;
using Codes = std::vector<uint8_t>;  // of all steps, the least first

// How far from zero, to this side, the code still changes: beyond it is that of `reach`.
float extent(const std::function<uint8_t(float)>& code_of, float reach) {
  const uint8_t last = code_of(reach);
  constexpr float kRatio = 0.9f;
  constexpr int kSamples = 1200;  // the least is 1e-55 of the reach
  float outer = reach, inner = reach;
  for (int i = 0; i < kSamples && code_of(inner) == last; ++i) outer = inner, inner *= kRatio;
  if (code_of(inner) == last) return 0;
  for (int i = 0; i < 12; ++i) {
    const float middle = inner + (outer - inner) / 2;
    (code_of(middle) == last ? outer : inner) = middle;
  }
  return std::abs(outer);
}

// The code falls, or rises, within the cell; both is what no cell may do.
struct Slopes {
  bool falls = false, rises = false;
};
Slopes slopes_of(const uint8_t* cell) {
  Slopes s;
  for (int i = 1; i < kPlaces; ++i) s.falls |= cell[i]<cell[i - 1], s.rises |= cell[i]> cell[i - 1];
  return s;
}

// What the steps stand for: `step` of them from zero, of which those beyond the inner ones are wider.
float number_of(int32_t step, float scale, int tail_shift) {
  const int32_t near = std::clamp(step, -kernels::kInnerSteps, kernels::kInnerSteps);
  return (static_cast<float>(near) + std::ldexp(static_cast<float>(step - near), tail_shift)) * scale;
}
float scale_for(float range, int tail_shift) {
  return range / number_of(kernels::kGreatestStep, 1, tail_shift);
}

// The rises of a cell, if no cell has both slopes, for `tail_shift`: from the codes where cells meet.
int estimated_rises(const std::function<uint8_t(float)>& code_of, float range, int tail_shift) {
  const float scale = scale_for(range, tail_shift);
  int most = 0, last = -1;
  for (int c = 0; c <= kCells; ++c) {
    const int code = code_of(number_of(kernels::kLeastStep + c * kPlaces, scale, tail_shift));
    if (last >= 0) most = std::max(most, std::abs(code - last));
    last = code;
  }
  return most;
}

// Tails cost about as much time as three rises. Beyond five rises steps become coarse: half of one is 0.01 of a code.
int choose_tail_shift(const std::function<uint8_t(float)>& code_of, float range) {
  constexpr int kCostOfTails = 3, kFine = 5, kCostOfCoarse = 4;
  int best = 0, least = std::numeric_limits<int>::max();
  for (int shift = 0; shift <= kernels::kMostTailShift; ++shift) {
    const int rises = estimated_rises(code_of, range, shift);
    const int cost = rises + std::max(0, rises - kFine) * kCostOfCoarse + (shift > 0 ? kCostOfTails : 0);
    if (cost < least) best = shift, least = cost;
  }
  return best;
}

std::optional<StepFunction> compress(const Codes& codes, StepFunction f) {
  int turn = 0, most = 0;
  std::vector<std::vector<uint8_t>> columns(kCells);
  for (int c = 0; c < kCells; ++c)
    if (slopes_of(codes.data() + c * kPlaces).falls) turn = c + 1;
  if (turn == kCells) return std::nullopt;
  for (int c = 0; c < kCells; ++c) {
    uint8_t cell[kPlaces];
    std::copy_n(codes.begin() + c * kPlaces, kPlaces, cell);
    if (c < turn) std::reverse(cell, cell + kPlaces);
    if (slopes_of(cell).falls) return std::nullopt;
    std::vector<uint8_t>& column = columns[static_cast<size_t>(c)];
    column = {cell[0]};
    for (int i = 1; i < kPlaces; ++i) column.insert(column.end(), cell[i] - cell[i - 1], static_cast<uint8_t>(i - 1));
    most = std::max(most, static_cast<int>(column.size()) - 1);
    if (most > kernels::kMostRises) return std::nullopt;
  }
  f.rises = most, f.turn = turn - kCells / 2;
  f.rows.assign(static_cast<size_t>(kernels::CodeFunction::bytes(f.rises)), 255);
  for (int c = 0; c < kCells; ++c)
    for (size_t i = 0; i < columns[static_cast<size_t>(c)].size(); ++i)
      f.rows[i * kCells + static_cast<size_t>((c + kCells / 2) % kCells)] = columns[static_cast<size_t>(c)][i];
  return f;
}

}  // namespace

numerics::QuantParams StepFunction::steps() const {
  return {.scale = scale, .zero_point = 0, .qmin = kernels::kLeastStep, .qmax = kernels::kGreatestStep};
}

std::optional<StepFunction> step_function(const std::function<uint8_t(float)>& code_of, float reach) {
  if (!std::isfinite(reach) || reach <= 0) return std::nullopt;
  float range = std::max(extent(code_of, reach), extent(code_of, -reach));
  if (range == 0) range = reach;  // a constant
  Codes codes(static_cast<size_t>(kCells * kPlaces));
  // Where the function turns in the middle of a cell and changes on both sides, slightly wider steps move the cells.
  constexpr int kTries = 4;
  const int shift = choose_tail_shift(code_of, range);
  for (int i = 0; i < kTries; ++i, range *= 1.013f) {
    const float scale = scale_for(range, shift);
    if (!(scale > 1e-30f)) return std::nullopt;
    for (int32_t s = kernels::kLeastStep; s <= kernels::kGreatestStep; ++s)
      codes[static_cast<size_t>(s - kernels::kLeastStep)] = code_of(number_of(s, scale, shift));
    if (auto f = compress(codes, {.scale = scale, .tail_shift = shift})) return f;
  }
  return std::nullopt;
}

}  // namespace octet::lower
