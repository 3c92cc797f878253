#include "cli/json_output.h"

#include <nlohmann/json.hpp>

#include "base/command_line.h"
#include "cli/flags.h"

namespace octet::cli {

void write_json_output(const std::string& path, nlohmann::ordered_json report) {
  report["command"] = command_line();
  write_text_output(path, report.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace octet::cli
