// From the two outputs of a DetectNet_v2 network to the boxes that its cells propose.
#pragma once
#include <span>
#include <vector>

#include "tasks/detectnet_v2/grid.h"
#include "tasks/detectnet_v2/postprocessing.h"
#include "vision/box.h"

namespace octet::tasks::detectnet_v2 {

// The boxes that cells of more coverage than their class's threshold propose for one image, clipped to it, by class;
// their score is the coverage. `coverage` and `boxes` are laid out as grid.h says.
std::vector<vision::Object> propose(std::span<const float> coverage, std::span<const float> boxes, const Grid& grid,
                                    const PostprocessingOptions& options);

}  // namespace octet::tasks::detectnet_v2
