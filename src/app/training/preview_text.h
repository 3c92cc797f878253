// What a training is going to do, as text.
#pragma once
#include <string>

#include "train/preview.h"

namespace octet::app {

std::string preview_text(const train::Preview& preview, const train::TrainOptions& options);

}  // namespace octet::app
