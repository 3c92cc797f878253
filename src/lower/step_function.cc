#include "lower/step_function.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/code_function.h"
#include "lower/line_fit.h"

namespace octet::lower {
namespace {

constexpr int kCells = 256, kRowPlaces = 256;
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
  for (int i = 1; i < kRowPlaces; ++i) s.falls |= cell[i]<cell[i - 1], s.rises |= cell[i]> cell[i - 1];
  return s;
}

// What the steps stand for: `step` of them from zero, of which those beyond the inner ones are wider.
float number_of(float step, float scale, int tail_shift) {
  const float near = std::clamp<float>(step, -kernels::kInnerSteps, kernels::kInnerSteps);
  return (near + std::ldexp(step - near, tail_shift)) * scale;
}
float scale_for(float range, int tail_shift) {
  return range / number_of(kernels::kGreatestStep, 1, tail_shift);
}

// The rises of a cell, if no cell has both slopes, for `tail_shift`: from the codes where cells meet.
int estimated_rises(const std::function<uint8_t(float)>& code_of, float range, int tail_shift) {
  const float scale = scale_for(range, tail_shift);
  int most = 0, last = -1;
  for (int c = 0; c <= kCells; ++c) {
    const int code = code_of(number_of(static_cast<float>(kernels::kLeastStep + c * kRowPlaces), scale, tail_shift));
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
    if (slopes_of(codes.data() + c * kRowPlaces).falls) turn = c + 1;
  if (turn == kCells) return std::nullopt;
  for (int c = 0; c < kCells; ++c) {
    uint8_t cell[kRowPlaces];
    std::copy_n(codes.begin() + c * kRowPlaces, kRowPlaces, cell);
    if (c < turn) std::reverse(cell, cell + kRowPlaces);
    if (slopes_of(cell).falls) return std::nullopt;
    std::vector<uint8_t>& column = columns[static_cast<size_t>(c)];
    column = {cell[0]};
    for (int i = 1; i < kRowPlaces; ++i)
      column.insert(column.end(), cell[i] - cell[i - 1], static_cast<uint8_t>(i - 1));
    most = std::max(most, static_cast<int>(column.size()) - 1);
    if (most > kernels::kMostRises) return std::nullopt;
  }
  f.rises = most, f.turn = turn - kCells / 2;
  f.table.assign(static_cast<size_t>(kernels::CodeFunction::bytes(f.rises)), 255);
  for (int c = 0; c < kCells; ++c)
    for (size_t i = 0; i < columns[static_cast<size_t>(c)].size(); ++i)
      f.table[i * kCells + static_cast<size_t>((c + kCells / 2) % kCells)] = columns[static_cast<size_t>(c)][i];
  return f;
}

// Lines over this range, if they are good enough.
struct FoundLines {
  StepFunction function;
  double error = 0;
};
std::optional<FoundLines> lines_over(const std::function<uint8_t(float)>& code_of, float range, float reach) {
  // A mean of 1/32 of a code adds about a hundredth to the noise of rounding to codes.
  constexpr double kMeanError = 1.0 / 32;
  // The last place begins with it.
  const float scale = range / static_cast<float>(kernels::kGreatestStep + 1 - kStepsOfPlace);
  if (!(scale > 1e-30f)) return std::nullopt;
  std::vector<PlaceCodes> codes(static_cast<size_t>(kPlaces));
  for (int p = 0; p < kPlaces; ++p) {
    const int first = kernels::kLeastStep + p * kStepsOfPlace;
    codes[static_cast<size_t>(p)] = {code_of(static_cast<float>(first) * scale),
                                     code_of(static_cast<float>(first + kStepsOfPlace - 1) * scale)};
  }
  // Sums beyond are rounded to these.
  if (codes.front().first != code_of(-reach) || codes.back().last != code_of(reach)) return std::nullopt;
  auto fit = fit_lines(codes);
  if (!fit || fit->mean_error > kMeanError) return std::nullopt;
  return FoundLines{{.scale = scale, .line_shift = fit->shift, .table = std::move(fit->table)}, fit->mean_error};
}

// The range, or a slightly wider one in which the side that ends first, in a bend, ends with a cell.
std::optional<StepFunction> lines(const std::function<uint8_t(float)>& code_of, float range, float shorter_side,
                                  float reach) {
  constexpr float kSideCells = kernels::kLineCells / 2.0f, kWider = 1.15f;
  std::optional<FoundLines> best = lines_over(code_of, range, reach);
  const float cells = std::floor(kSideCells * shorter_side / range);
  if (cells >= 1 && cells < kSideCells && kSideCells * shorter_side / cells <= range * kWider)
    if (auto other = lines_over(code_of, kSideCells * shorter_side / cells, reach); other)
      if (!best || other->error < best->error) best = std::move(other);
  if (!best) return std::nullopt;
  return std::move(best->function);
}

}  // namespace

numerics::QuantParams StepFunction::steps() const {
  return {.scale = scale, .zero_point = 0, .qmin = kernels::kLeastStep, .qmax = kernels::kGreatestStep};
}

std::optional<StepFunction> step_function(const std::function<uint8_t(float)>& code_of, float reach, Fit fit) {
  if (!std::isfinite(reach) || reach <= 0) return std::nullopt;
  const float above = extent(code_of, reach), below = extent(code_of, -reach);
  float range = std::max(above, below);
  if (range == 0) range = reach;  // a constant
  if (fit == Fit::kClose)
    if (auto f = lines(code_of, range, std::min(above, below), reach)) return f;
  Codes codes(static_cast<size_t>(kCells * kRowPlaces));
  // Where the function turns in the middle of a cell and changes on both sides, slightly wider steps move the cells.
  constexpr int kTries = 4;
  const int shift = choose_tail_shift(code_of, range);
  for (int i = 0; i < kTries; ++i, range *= 1.013f) {
    const float scale = scale_for(range, shift);
    if (!(scale > 1e-30f)) return std::nullopt;
    for (int32_t s = kernels::kLeastStep; s <= kernels::kGreatestStep; ++s)
      codes[static_cast<size_t>(s - kernels::kLeastStep)] = code_of(number_of(static_cast<float>(s), scale, shift));
    if (auto f = compress(codes, {.scale = scale, .tail_shift = shift})) return f;
  }
  return std::nullopt;
}

}  // namespace octet::lower
