// TAO's specification of DetectNet_v2 (the file that `tao model detectnet_v2 train` takes), field by field.
#pragma once
#include "tao/message.h"

namespace octet::tasks::detectnet_v2 {

const tao::Message& tao_specification();

// Of its blocks, what the specification of the inference has as well.
tao::Message clustering_config();

}  // namespace octet::tasks::detectnet_v2
