// --json of the commands that report on their work.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace octet::cli {

// Writes `report`, an object, with the command line that it comes from, to the file `path` or to standard output ("-").
// Names of files may be any bytes: what is no UTF-8 is replaced.
void write_json_output(const std::string& path, nlohmann::ordered_json report);

}  // namespace octet::cli
