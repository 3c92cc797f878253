// Functions of steps as a line for each of 64 cells (engine/kernels/code_function.h, CodeFunction::lines).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/kernels/code_function.h"

namespace octet::lower {

// Places of all cells: steps that no line tells apart.
inline constexpr int kCellPlaces = 128, kPlaces = kCellPlaces * kernels::kLineCells, kStepsOfPlace = 8;

// The codes of the first and of the last step of a place. Between them they only rise, or only fall.
struct PlaceCodes {
  uint8_t first = 0, last = 0;
};

struct LineFit {
  std::vector<uint8_t> table;  // kernels::kLineBytes
  int32_t shift = 0;
  // Of the cells in which the codes change: in which share of the steps the line has the code beside the right one. It
  // is the distance of the line from the function in codes, on average.
  double mean_error = 0;
};

// `codes`: of all places, that of the least step first. Nothing where a line would be off by more than one code
// somewhere, or at a distance of more than kernels::kLineError from a border, or leave the codes that the function has.
std::optional<LineFit> fit_lines(std::span<const PlaceCodes> codes);

}  // namespace octet::lower
