#include "cli/man_page.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace octet::cli {
namespace {

// Minus signs, since these are what is typed; a line that begins as a request does is none.
std::string escaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((i == 0 || text[i - 1] == '\n') && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Lines that belong together become one paragraph; indented ones, and those of a list, keep their breaks.
std::string paragraphs(const std::string& text) {
  std::istringstream lines(text);
  std::ostringstream out;
  std::string line;
  bool kept = false;
  while (std::getline(lines, line)) {
    const bool keep = !line.empty() && line[0] == ' ';
    if (keep != kept) out << (keep ? ".EX\n" : ".EE\n");
    kept = keep;
    out << (line.empty() ? ".PP" : escaped(line)) << "\n";
  }
  if (kept) out << ".EE\n";
  return out.str();
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string header(const std::string& name, const std::string& summary, const std::string& version) {
  return ".TH " + escaped(upper(name)) + " 1 \"\" \"Octet " + version + "\" \"User Commands\"\n.SH NAME\n" +
         escaped(name) + " \\- " + escaped(summary) + "\n.SH SYNOPSIS\n";
}

std::string option_line(const OptionText& option) {
  std::string out;
  for (const std::string& name : option.names) out += (out.empty() ? "\\fB" : ", \\fB") + escaped(name) + "\\fR";
  if (option.by_place) out = "\\fI" + escaped(option.names[0]) + "\\fR";
  if (!option.value.empty() && !option.by_place) {
    // A break is possible between words.
    std::string value;
    for (char c : escaped(option.value)) value += c == '|' ? std::string("|\\:") : std::string(1, c);
    out += " \\fI" + value + "\\fR";
  }
  if (option.repeated) out += " ...";
  return out;
}

std::string options_section(const CommandText& command) {
  std::string out;
  for (const OptionText& option : command.options) {
    out += ".TP\n" + option_line(option) + "\n" + paragraphs(option.help);
    if (option.required) out += "Required.\n";
    if (!option.default_value.empty()) out += "Default: " + escaped(option.default_value) + "\n";
  }
  return out.empty() ? "" : ".SH OPTIONS\n" + out;
}

std::string page_reference(const std::string& name) {
  return ".BR " + escaped(name) + " (1)";
}

}  // namespace

std::string man_page_name(const CommandText& command) {
  std::string name = "octet-" + command.name;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page_of_program(const std::vector<CommandText>& commands, const std::string& version) {
  std::ostringstream out;
  out << header("octet", "low-precision training and INT8 deployment of vision networks", version)
      << ".B octet\n.I COMMAND\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n"
      << "Takes a network, trains it, calibrates it, trains it quantization\\-aware, writes it as QDQ ONNX, compiles "
         "it to "
         "an\nengine file, runs that, and proves that the engine computes what was trained.\n.SH COMMANDS\n";
  for (const CommandText& command : commands)
    out << ".TP\n" << page_reference(man_page_name(command)) << "\n" << escaped(command.summary) << "\n";
  out << ".SH EXIT STATUS\n"
         ".TP\n.B 0\ndone\n.TP\n.B 1\nthe work failed\n.TP\n.B 2\nusage or specification error\n"
         ".TP\n.B 3\na check did not hold\n"
         ".SH ENVIRONMENT\n"
         ".TP\n.B NO_COLOR\nWhen it is not empty, messages have no colors.\n"
         ".TP\n.B OCTET_CACHE\nFolder for what is fetched and kept, instead of ~/.cache/octet.\n"
         ".TP\n.B OCTET_ISA\nInstruction set of the engine: scalar, generic, avx2, avx_vnni, avx512_vnni or "
         "amx_int8.\n";
  return out.str();
}

std::string man_page(const CommandText& command, const std::string& version) {
  std::ostringstream out;
  out << header(man_page_name(command), command.summary, version) << ".B octet " << escaped(command.name) << "\n";
  bool flags = false;
  for (const OptionText& option : command.options) {
    if (!option.by_place && !option.required) flags = true;
    if (option.by_place || option.required) {
      const std::string line = option_line(option);
      out << (option.required ? line : "[" + line + "]") << "\n";
    }
  }
  if (flags) out << ".RI [ OPTIONS ]\n";
  out << ".SH DESCRIPTION\n" << paragraphs(command.summary + ".");
  if (!command.details.empty()) out << ".PP\n" << paragraphs(command.details);
  out << options_section(command);
  if (!command.examples.empty()) {
    out << ".SH EXAMPLES\n.EX\n";
    for (const std::string& example : command.examples) out << escaped(example) << "\n";
    out << ".EE\n";
  }
  out << ".SH SEE ALSO\n" << page_reference("octet") << "\n";
  return out.str();
}

}  // namespace octet::cli
