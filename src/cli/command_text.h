// What there is to say of every command, as plain text: for shells, manual pages and whoever else reads the table.
#pragma once
#include <string>
#include <vector>

namespace octet::cli {

struct OptionText {
  std::vector<std::string> names;  // "-m", "--model"; of what is told by its place alone: "IMAGES"
  bool by_place = false;
  std::string value;               // "FILE", "N", "fp32|int8"; empty: a flag without value
  std::vector<std::string> words;  // the values that are taken, where only some are
  bool takes_path = false;         // the value is a file or folder
  bool required = false, repeated = false;
  std::string default_value;
  std::string help;
};

struct CommandText {
  std::string name;  // "convert spec"
  std::string summary, details;
  std::string group_summary;  // of the command that it is a kind of
  std::vector<std::string> examples;
  std::vector<OptionText> options;
};

// In the order of the table, kinds in the place of their command. Those that another program has, which is not there,
// have no details and options.
std::vector<CommandText> all_command_texts();

}  // namespace octet::cli
