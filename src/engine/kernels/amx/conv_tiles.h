// Convolutions with the weights of the engine file as they are: which of them the tiles can run, and how.
#pragma once
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {

// Tiles of pixels x tiles of 16 channels that accumulate at a time.
enum class Blocking { k2x2, k4x1, k1x4 };

struct TileChoice {
  Blocking blocking = Blocking::k2x2;
  bool stream_weights = false;   // past the L1 cache
  bool channels_inside = false;  // all channels of a block of pixels before the next block
};

// False where too little of a tile would be used: matrix-vector products, a few channels of a group, 4-byte pixels.
bool tiles_apply(const ConvArgs& args);
TileChoice choose_blocking(const ConvArgs& args, Range rows, Range blocks);
// Estimated time when a multiplication takes this many cycles, its share of the loads included; `store`: more cycles
// for every 16 outputs.
double tiles_cost_at(double cycles, const ConvArgs& args, int threads, double store = 0);
// ConvTactic::cost of what choose_blocking chooses.
double tiles_cost(const ConvArgs& args, int threads);
void run_tiles(const TileChoice& choice, const ConvArgs& args, Range rows, Range blocks);

}  // namespace octet::kernels
