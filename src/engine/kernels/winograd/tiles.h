// The tiles of a Winograd convolution in the order in which its kernel takes them. In an anonymous namespace: see
// kernels/CMakeLists.txt.
#pragma once
#include "engine/kernels/winograd/winograd.h"

namespace octet::kernels {
namespace {

// A tile of output: its first pixel and how many of its rows and columns there are.
struct TilePlace {
  int64_t n = 0, y = 0, x = 0, height = 0, width = 0;
};

// Walks over the tiles of some output rows (counted over n * out.h), row of tiles by row of tiles.
struct TileCursor {
  const QTensor* out = nullptr;
  int64_t row = 0, end = 0, x = 0;

  int64_t band() const {  // rows of the tiles at `row`
    int64_t rows = out->h - row % out->h;
    if (rows > end - row) rows = end - row;
    return rows < kWinogradTile ? rows : kWinogradTile;
  }
  int64_t count() const {  // of all tiles from here on
    int64_t bands = 0;
    for (TileCursor c = *this; c.row < c.end; c.row += c.band()) ++bands;
    return bands * ((out->w + kWinogradTile - 1) / kWinogradTile);
  }
  TilePlace next() {
    TilePlace t{row / out->h, row % out->h, x, band(), out->w - x < kWinogradTile ? out->w - x : kWinogradTile};
    x += kWinogradTile;
    if (x >= out->w) x = 0, row += t.height;
    return t;
  }
};

}  // namespace
}  // namespace octet::kernels
