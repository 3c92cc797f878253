// TAO's inference specification of DetectNet_v2 (the file that `tao model detectnet_v2 inference` takes), field by
// field.
#pragma once
#include "tao/message.h"

namespace octet::tasks::detectnet_v2 {

const tao::Message& tao_inference_specification();

}  // namespace octet::tasks::detectnet_v2
