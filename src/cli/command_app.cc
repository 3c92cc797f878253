#include "cli/command_app.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace octet::cli {

// Breaks lines at spaces so that none is longer than a terminal is wide. Breaks that are there stay.
std::string wrapped_details(const Command& command) {
  constexpr size_t kWidth = 100;
  const std::string& text = command.details;
  std::string out;
  size_t column = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    if (column > 0 && column + end - begin > kWidth) {
      out.back() = '\n';  // the space before this word
      column = 0;
    }
    out.append(text, begin, end - begin + 1);
    column = end < text.size() && text[end] == '\n' ? 0 : column + end - begin + 1;
    begin = end + 1;
  }
  return out;
}

CommandApp::CommandApp(const Command& command, const std::string& whole_name)
    : parser(std::make_unique<CLI::App>(
          command.summary + (command.details.empty() ? "" : "\n\n" + wrapped_details(command)), whole_name)) {
  parser->get_formatter()->column_width(34);
  parser->allow_extras();  // who runs the command refuses them, with the nearest name
  std::string footer = command.examples.size() > 1 ? "Examples:" : "Example:";
  for (const std::string& example : command.examples) footer += "\n  " + example;
  parser->footer(footer);
  run = command.define(*parser);
  parser->add_flag("-v,--verbose", verbose, "Say more about what is done");
  parser->add_flag("--quiet", quiet, "Say only what went wrong");
}

CommandApp::~CommandApp() = default;

}  // namespace octet::cli
