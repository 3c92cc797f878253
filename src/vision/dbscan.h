// Clusters of overlapping boxes by DBSCAN (Ester, Kriegel, Sander, Xu 1996) over the distance 1 - IoU, with a weight
// for each box, as scikit-learn's `sample_weight`: for detectors whose cells all propose a box.
#pragma once
#include <span>
#include <vector>

#include "vision/box.h"

namespace octet::vision {

struct DbscanOptions {
  float eps = 0.5f;      // boxes of distance <= eps are neighbors, each its own, too
  float min_weight = 1;  // a core box has at least this much weight in its neighborhood
  Borders borders = Borders::kExclusive;
};

// The cluster of each box, numbered from 0 in the order of their first core box; -1: noise. A box on the edge of two
// clusters belongs to the one found first. `weights` has one for each box. Quadratic in the boxes.
std::vector<int> dbscan(std::span<const Box> boxes, std::span<const float> weights, const DbscanOptions& options = {});

}  // namespace octet::vision
