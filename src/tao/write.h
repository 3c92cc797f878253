// From an experiment to a specification of TAO.
#pragma once
#include <string>

#include "tao/message.h"
#include "tao/tree.h"

namespace octet::tao {

// In text format, with every field that has a key in `experiment`; read_specification() of it gives these keys again.
// What the format has no field for is left out. `classes` (a key, "data.target_classes") lists the classes: a section
// for one of them that is absent, or leaves a key open, has it from the section around (kClassSections in paths.h).
std::string write_specification(const Message& message, const Tree& experiment, const std::string& classes);

}  // namespace octet::tao
