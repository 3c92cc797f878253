// TAO's specification of DetectNet_v2 (the file that `tao model detectnet_v2 train` takes), field by field.
#pragma once
#include "tao/message.h"

namespace octet::tasks::detectnet_v2 {

const tao::Message& tao_specification();

}  // namespace octet::tasks::detectnet_v2
