#include "lower/line_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace octet::lower {
namespace {

struct Line {
  int slope = 0, offset = 0, base = 0;
  int errors = 0;  // ends of places with the code beside the right one
};

// The codes of one cell and what lines may be.
struct Cell {
  std::span<const PlaceCodes> codes;
  int least, greatest;  // of the whole function
  int shift;
  int end;  // the place that all sums beyond the steps are rounded to, which has to be right; -1: in another cell

  // This slope and offset with the best base; nothing where it does not do.
  std::optional<Line> line(int slope, int offset) const {
    int16_t rise[kCellPlaces];
    int sum = 0;
    for (int p = 0; p < kCellPlaces; ++p) {
      rise[p] = static_cast<int16_t>(static_cast<int16_t>(slope * (p + offset)) >> shift);
      const PlaceCodes& c = codes[static_cast<size_t>(p)];
      sum += c.first + c.last - 2 * rise[p];
    }
    const int base = static_cast<int>(std::lround(static_cast<double>(sum) / (2 * kCellPlaces)));
    int errors = 0, most = 0, low = least, high = least, run = 0, longest = 0;
    for (int p = 0; p < kCellPlaces; ++p) {
      const PlaceCodes& c = codes[static_cast<size_t>(p)];
      const int code = base + rise[p], first = std::abs(code - c.first), last = std::abs(code - c.last);
      errors += first + last, most = std::max({most, first, last});
      run = first + last > 0 ? run + 1 : 0, longest = std::max(longest, run);
      low = std::min(low, code), high = std::max(high, code);
    }
    if (most > 1 || low < least || high > greatest) return std::nullopt;
    // The function may be steeper there than the line, by one code over the cell.
    const double steepness = std::ldexp(std::abs(slope), -shift) + 1.0 / kCellPlaces;
    if (longest * steepness > kernels::kLineError) return std::nullopt;
    if (end >= 0) {
      const PlaceCodes& c = codes[static_cast<size_t>(end)];
      if (base + rise[end] != c.first || c.first != c.last) return std::nullopt;
    }
    return Line{slope, offset, base, errors};
  }

  std::optional<Line> best_line() const {
    const int first = codes.front().first, last = codes.back().last;
    if (std::all_of(codes.begin(), codes.end(),
                    [&](const PlaceCodes& c) { return c.first == first && c.last == first; }))
      return Line{0, 0, first, 0};
    constexpr int kAround = 3;  // slopes to either side of that from end to end
    const int middle = static_cast<int>(std::lround(std::ldexp(last - first, shift) / (kCellPlaces - 1)));
    std::optional<Line> best;
    for (int slope = std::max(middle - kAround, -127); slope <= std::min(middle + kAround, 127); ++slope) {
      // Later offsets repeat these a code higher.
      const int offsets = slope == 0 ? 1 : std::min(kCellPlaces, (1 << shift) / std::abs(slope) + 1);
      for (int offset = 0; offset < offsets; ++offset)
        if (const auto l = line(slope, offset); l && (!best || l->errors < best->errors)) best = l;
    }
    return best;
  }
};

std::optional<LineFit> fit_with(std::span<const PlaceCodes> codes, int shift) {
  int least = 255, greatest = 0;
  for (const PlaceCodes& c : codes)
    least = std::min<int>({least, c.first, c.last}), greatest = std::max<int>({greatest, c.first, c.last});
  LineFit fit{.table = std::vector<uint8_t>(kernels::kLineBytes), .shift = shift};
  int changing = 0, errors = 0;
  for (int c = 0; c < kernels::kLineCells; ++c) {
    const int end = c == 0 ? 0 : c == kernels::kLineCells - 1 ? kCellPlaces - 1 : -1;
    const Cell cell{codes.subspan(static_cast<size_t>(c) * kCellPlaces, kCellPlaces), least, greatest, shift, end};
    const auto line = cell.best_line();
    if (!line) return std::nullopt;
    if (line->slope != 0) ++changing;
    errors += line->errors;
    // The least step is in cell 32, counted by its bits; the bits of odd cells begin with 128.
    const int at = (c + kernels::kLineCells / 2) % kernels::kLineCells;
    uint8_t* const out = fit.table.data() + at;
    out[0] = static_cast<uint8_t>(line->base);
    out[kernels::kLineCells] = static_cast<uint8_t>(line->slope);
    out[2 * kernels::kLineCells] = static_cast<uint8_t>(line->offset + at % 2 * kCellPlaces);
  }
  fit.mean_error = static_cast<double>(errors) / (2 * kCellPlaces * std::max(changing, 1));
  return fit;
}

}  // namespace

std::optional<LineFit> fit_lines(std::span<const PlaceCodes> codes) {
  OCTET_CHECK(codes.size() == static_cast<size_t>(kPlaces));
  std::optional<LineFit> best;
  for (int shift = kernels::kLeastLineShift; shift <= kernels::kGreatestLineShift; ++shift)
    if (auto fit = fit_with(codes, shift); fit && (!best || fit->mean_error < best->mean_error)) best = std::move(fit);
  return best;
}

}  // namespace octet::lower
