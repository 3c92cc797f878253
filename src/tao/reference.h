// The fields of a specification in words.
#pragma once
#include <string>

#include "tao/message.h"

namespace octet::tao {

// A table of fields for each message, the outermost first: type, range, TAO's meaning, and the key of the experiment or
// why there is none. Messages that stand in several places with the same fields have one table.
std::string reference_markdown(const Message& message);

// Every key that the fields stand for, with "*" and "[]" where names and items stand.
std::vector<std::string> keys_of(const Message& message);

}  // namespace octet::tao
