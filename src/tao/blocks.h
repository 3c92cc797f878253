// Blocks that the specifications of several of TAO's networks share.
#pragma once
#include "tao/message.h"

namespace octet::tao {

// Images, labels and classes: section `data`.
Message dataset_config();
// What is done to images: section `data.augment`, and the shape of `model.input`.
Message augmentation_config();
// Epochs, learning rate, optimizer: section `train`, and, where it is the quantization-aware training that the file
// asks for, `finetune`.
Message training_config();
// What TAO's dataset_convert reads.
Message dataset_export_config();

}  // namespace octet::tao
