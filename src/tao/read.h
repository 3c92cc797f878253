// From a specification of TAO to an experiment.
#pragma once
#include <string>
#include <vector>

#include "schema/tree.h"
#include "tao/message.h"

namespace octet::tao {

struct Experiment {
  schema::Node tree;                // what the file says, under Octet's keys; locations are those of the fields
  std::vector<UnusedField> unused;  // each once, however often the file has it
};

// `text` as parse_text_format() gives it. UserError (exit 2) with line and column for an unknown field (with the
// nearest name, or the message that it belongs to), a value of another type or outside its range, an unknown name of an
// enumeration, a field that stands there twice or beside one that excludes it, and one that is missing.
Experiment read_specification(const Message& message, const schema::Node& text);

}  // namespace octet::tao
