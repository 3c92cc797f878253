// The GridBox head of DetectNet_v2: two 1x1 convolutions on the features of one stride, for how much of each cell a
// class covers and where the borders of its object lie (grid.h).
#pragma once
#include "models/zoo.h"
#include "tasks/detectnet_v2/grid.h"
#include "tasks/signature.h"

namespace octet::tasks::detectnet_v2 {

inline constexpr const char* kCoverageOutput = "output_cov/Sigmoid";  // [batch, classes, rows, columns], 0 .. 1
inline constexpr const char* kBoxOutput = "output_bbox/BiasAdd";      // [batch, 4 * classes, rows, columns]

// Takes the backbone's graph. Weights: Glorot uniform from `seed` and the names, biases 0, as TAO starts them.
ir::Graph add_head(models::Backbone backbone, int64_t classes, int64_t stride, uint64_t seed);

// The grid of a network with this head. UserError (exit 2) naming input, outputs and shapes for another one, or where
// the input's height and width are not fixed.
Grid grid_of(const Signature& network);

}  // namespace octet::tasks::detectnet_v2
