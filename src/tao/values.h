// Values of fields: tokens of the text format to values of an experiment, and back.
#pragma once
#include <optional>
#include <string>

#include "schema/tree.h"
#include "tao/message.h"

namespace octet::tao {

// The value as an experiment has it, with the location of the token; `path` names the field in messages. UserError
// (exit 2) for another type, a name that the enumeration does not have, and numbers that are out of range.
schema::Node read_value(const Field& field, const schema::Node& token, const std::string& path);

// The token for a value of an experiment; none where TAO has no name for it.
std::optional<std::string> write_value(const Field& field, const schema::Node& value);

}  // namespace octet::tao
