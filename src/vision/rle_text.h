// The runs of a mask as COCO's files and API write them in printable characters ("counts" of a segmentation).
#pragma once
#include <string>
#include <string_view>

#include "vision/mask.h"

namespace octet::vision {

// Six bits a character from '0' on, five of a number and one that says whether more follow, the low ones first; from
// the fourth run on a number is the difference to the run before the last. UserError with the place of the character
// where the text is damaged, or describes another number of pixels than height * width.
Mask parse_rle(std::string_view text, int height, int width);
// The opposite; the same text as pycocotools' encode.
std::string rle_text(const Mask& mask);

}  // namespace octet::vision
