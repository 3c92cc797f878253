// The classes that the blocks of a specification name.
#pragma once
#include "tao/message.h"

namespace octet::tasks::detectnet_v2 {

// The classes are those of cost_function_config, or, in a file for inference, of inferencer_config. UserError (exit 2)
// for one that no label is mapped to, as it would be learned from nothing, and for an entry of another block that
// differs from a class in letter case alone. An entry for something that is no class is taken out, with a word.
tao::Hook check_classes();

}  // namespace octet::tasks::detectnet_v2
