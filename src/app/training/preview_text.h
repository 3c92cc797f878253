// What a training is going to do, as text.
#pragma once
#include <string>

#include "base/world.h"
#include "train/preview.h"

namespace octet::app {

// `world`: the processes that train.
std::string preview_text(const train::Preview& preview, const train::TrainOptions& options, const World& world);

}  // namespace octet::app
