#include "cli/command_text.h"

#include <CLI/App.hpp>
#include <algorithm>
#include <cctype>

#include "cli/command_app.h"
#include "cli/commands.h"

namespace octet::cli {
namespace {

// "fp32|int8" and "voc|kitti=voc": the words; nothing where it is one word that stands for any value.
std::vector<std::string> words_of(const std::string& value) {
  std::vector<std::string> words;
  if (value.find('|') == std::string::npos) return words;
  for (const std::string& word : CLI::detail::split(value, '|')) {
    const bool is_word = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '_' || c == '-' || c == '.';
    });
    if (!is_word) return {};
    words.push_back(word);
  }
  return words;
}

// What stands for the value: "INT:INT in [0 - 8]" is what the parser makes of a number with limits.
std::string value_of(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  if (name.starts_with("INT")) return "N";
  if (name.starts_with("FLOAT")) return "X";
  return name.empty() ? "VALUE" : name.substr(0, name.find(" x "));  // "C,H,W x 3"
}

OptionText text_of(const CLI::Option& option) {
  OptionText text;
  text.by_place = option.get_positional();
  if (text.by_place) text.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) text.value = value_of(option);
  text.words = words_of(text.value);
  const std::vector<std::string> paths = {"FILE", "DIR", "FOLDER", "PATH", "SPEC", "TEXT", "MODEL", "IMAGE"};
  text.takes_path = text.words.empty() && std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
                      return text.value.starts_with(path);
                    });
  text.required = option.get_required();
  text.repeated = option.get_items_expected_max() > 1;
  text.default_value = option.get_default_str();
  text.help = option.get_description();
  return text;
}

void add_text(const Command& command, const std::string& before, const std::string& group_summary,
              std::vector<CommandText>& texts) {
  const std::string name = before + command.name;
  for (const Command& kind : command.kinds) add_text(kind, name + " ", command.summary, texts);
  if (!command.kinds.empty() || !command.unavailable.empty()) return;
  CommandText text;
  text.name = name;
  text.summary = command.summary;
  text.group_summary = group_summary;
  text.details = command.details;
  text.examples = command.examples;
  const CommandApp app(command, "octet " + name);
  for (const CLI::Option* option : app.parser->get_options()) text.options.push_back(text_of(*option));
  texts.push_back(text);
}

}  // namespace

std::vector<CommandText> all_command_texts() {
  std::vector<CommandText> texts;
  for (const Command& command : all_commands()) add_text(command, "", "", texts);
  return texts;
}

}  // namespace octet::cli
