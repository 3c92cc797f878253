// A described struct in words: for a page of documentation and for the terminal.
#pragma once
#include <string>

#include "schema/schema.h"

namespace octet::schema {

// One table of keys for each section, the outermost first.
std::string reference_markdown(const Section& root);
// The keys of the section `path` ("train.optimizer"; empty: all) as text for a terminal. UserError for an unknown one,
// with `what` as the name of the whole.
std::string section_help(const Section& root, const std::string& path, const std::string& what);

}  // namespace octet::schema
