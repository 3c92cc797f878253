// Protocol buffers' text format, in which NVIDIA TAO writes its specifications, as a tree; what the fields mean is said
// by a Message (message.h).
//
//   training_config {              # a message; a colon before the brace may stand there, <...> are braces, too
//     num_epochs: 120              // no comment: those begin with #
//     learning_rate: { min: 5e-6, max: 5e-4; }
//     names: ["car", "pe" "destrian"]    # the same as names: "car"  names: "pedestrian"
//   }
//
// https://protobuf.dev/reference/protobuf/textformat-spec/
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "schema/tree.h"

namespace octet::tao {

// The message of a file: a map whose entries have the file's order, and the same key again where a field stands there
// several times (an item of a list [a, b] is an entry, too). Values are maps and scalars; `text` of a scalar is the
// token as it is written, that of strings (`quoted`) without quotes, escapes resolved, neighbors joined. `name` stands
// for the file. UserError (exit 2), with line and column, for everything that is not text format, for strings that are
// not UTF-8, and for what is larger or deeper than schema/source_text.h allows.
schema::Node parse_text_format(std::string_view text, const std::string& name);

// Whether a text is meant to be one rather than YAML: a line begins with a name that a brace follows, or with one of
// `fields`, which are no keys of an experiment in YAML, and ends with ": {".
bool looks_like_text_format(std::string_view text, const std::vector<std::string>& fields);

// `text` as a string of the format, in double quotes.
std::string text_format_string(const std::string& text);

}  // namespace octet::tao
