#include "cli/completion_scripts.h"

#include <algorithm>
#include <sstream>

#include "schema/schema.h"

namespace octet::cli {
namespace {

// A command as the first argument names it, and the second ones where it has kinds.
struct Family {
  std::string name, summary;
  std::vector<const CommandText*> kinds;
};

std::vector<Family> families_of(const std::vector<CommandText>& commands) {
  std::vector<Family> families;
  for (const CommandText& command : commands) {
    const size_t space = command.name.find(' ');
    const std::string first = command.name.substr(0, space);
    if (space == std::string::npos) {
      families.push_back({first, command.summary, {}});
    } else {
      if (families.empty() || families.back().name != first) families.push_back({first, command.group_summary, {}});
      families.back().kinds.push_back(&command);
    }
  }
  return families;
}

std::string kind_name(const CommandText& command) {
  return command.name.substr(command.name.find(' ') + 1);
}

std::string first_names(const std::vector<Family>& families) {
  std::vector<std::string> names;
  for (const Family& family : families) names.push_back(family.name);
  return schema::join(names, " ");
}

std::string first_sentence(const std::string& text) {
  const size_t end = text.find_first_of(".;\n");
  return text.substr(0, end);
}

// Within single quotes of bash and zsh.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Within those of fish.
std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

// What _arguments of zsh takes apart at colons and brackets.
std::string zsh_escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == ':' || c == '[' || c == ']' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

std::string zsh_action(const OptionText& option) {
  if (!option.words.empty()) return "(" + schema::join(option.words, " ") + ")";
  return option.takes_path ? "_files" : " ";
}

std::string zsh_argument(const OptionText& option) {
  const std::string value =
      ":" + zsh_escaped(option.by_place ? option.names[0] : option.value) + ":" + zsh_action(option);
  if (option.by_place) return quoted((option.repeated ? "*" : option.required ? "" : ":") + value);
  const std::string help = "[" + zsh_escaped(first_sentence(option.help)) + "]";
  // Names of one option exclude each other unless it is repeated; zsh expands the braces.
  const bool several = option.names.size() > 1;
  std::string out = option.repeated ? "'*'" : several ? quoted("(" + schema::join(option.names, " ") + ")") : "";
  out += several ? "{" + schema::join(option.names, ",") + "}" : option.names[0];
  return out + quoted(help + (option.value.empty() ? "" : value));
}

}  // namespace

std::string bash_completions(const std::vector<CommandText>& commands) {
  const std::vector<Family> families = families_of(commands);
  std::ostringstream out;
  out << "# Completion of octet for bash, made by: octet completions bash\n"
         "_octet() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  local command=\"${COMP_WORDS[1]}\" values='' options='' first=2\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      << "    COMPREPLY=($(compgen -W " << quoted(first_names(families) + " help --help --version")
      << " -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  if [ \"$command\" = help ]; then\n"
      << "    COMPREPLY=($(compgen -W " << quoted(first_names(families)) << " -- \"$current\"))\n"
      << "    return\n"
         "  fi\n";
  for (const Family& family : families) {
    if (family.kinds.empty()) continue;
    std::vector<std::string> kinds;
    for (const CommandText* kind : family.kinds) kinds.push_back(kind_name(*kind));
    out << "  if [ \"$command\" = " << family.name << " ]; then\n"
        << "    if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
        << "      COMPREPLY=($(compgen -W " << quoted(schema::join(kinds, " ")) << " -- \"$current\"))\n"
        << "      return\n"
           "    fi\n"
           "    command=\"$command ${COMP_WORDS[2]}\"\n"
           "  fi\n";
  }
  out << "  case \"$command $previous\" in\n";
  for (const CommandText& command : commands)
    for (const OptionText& option : command.options) {
      if (option.by_place || option.value.empty() || option.takes_path) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back("'" + command.name + " " + name + "'");
      // A value that is neither one of some words nor a file is not guessed.
      out << "    " << schema::join(patterns, "|") << ") values=" << quoted(schema::join(option.words, " ") + " ")
          << " ;;\n";
    }
  out << "  esac\n"
         "  if [ -n \"$values\" ]; then\n"
         "    compopt +o default +o bashdefault 2>/dev/null\n"
         "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case \"$command\" in\n";
  for (const CommandText& command : commands) {
    std::vector<std::string> names, words;
    for (const OptionText& option : command.options) {
      if (option.by_place)
        words.insert(words.end(), option.words.begin(), option.words.end());
      else
        names.insert(names.end(), option.names.begin(), option.names.end());
    }
    out << "    " << quoted(command.name) << ") options=" << quoted(schema::join(names, " "))
        << " values=" << quoted(schema::join(words, " ")) << " ;;\n";
  }
  out << "  esac\n"
         "  case \"$current\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$values\" -- \"$current\")) ;;  # else files, as for any command\n"
         "  esac\n"
         "}\n"
         "complete -o default -o bashdefault -F _octet octet\n";
  return out.str();
}

std::string zsh_completions(const std::vector<CommandText>& commands) {
  std::ostringstream out;
  const auto described = [](const std::string& name, const std::string& summary) {
    return quoted(zsh_escaped(name) + ":" + summary);
  };
  out << "#compdef octet\n"
         "# Completion of octet for zsh, made by: octet completions zsh\n"
         "_octet() {\n"
         "  local -a commands kinds\n"
         "  commands=(\n";
  const std::vector<Family> families = families_of(commands);
  for (const Family& family : families) out << "    " << described(family.name, family.summary) << "\n";
  out << "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  shift words; (( CURRENT-- ))\n"
         "  case $command in\n";
  for (const Family& family : families) {
    if (family.kinds.empty()) continue;
    out << "    " << family.name << ")\n      kinds=(\n";
    for (const CommandText* kind : family.kinds)
      out << "        " << described(kind_name(*kind), kind->summary) << "\n";
    out << "      )\n"
           "      if (( CURRENT == 2 )); then\n"
           "        _describe kind kinds\n"
           "        return\n"
           "      fi\n"
           "      command=\"$command $words[2]\"\n"
           "      shift words; (( CURRENT-- )) ;;\n";
  }
  out << "  esac\n"
         "  case $command in\n"
         "    help) _describe command commands ;;\n";
  for (const CommandText& command : commands) {
    out << "    " << quoted(command.name) << ")\n      _arguments -s";
    for (const OptionText& option : command.options) out << " \\\n        " << zsh_argument(option);
    out << " ;;\n";
  }
  out << "  esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _octet ]; then _octet \"$@\"; else compdef _octet octet; fi\n";
  return out.str();
}

std::string fish_completions(const std::vector<CommandText>& commands) {
  std::ostringstream out;
  const std::vector<Family> families = families_of(commands);
  out << "# Completion of octet for fish, made by: octet completions fish\n"
         "function __octet_command\n"
         "  set -l words (commandline -opc)\n"
         "  set -l command $words[2]\n"
         "  switch \"$command\"\n";
  for (const Family& family : families)
    if (!family.kinds.empty())
      out << "    case " << family.name
          << "\n      test (count $words) -gt 2; and set command \"$command $words[3]\"\n";
  out << "  end\n"
         "  test \"$command\" = \"$argv[1]\"\n"
         "end\n";
  const std::string none = "complete -c octet -n \"__octet_command ''\" -f -a ";
  for (const Family& family : families) out << none << family.name << " -d " << fish_quoted(family.summary) << "\n";
  for (const Family& family : families)
    for (const CommandText* kind : family.kinds)
      out << "complete -c octet -n \"__octet_command '" << family.name << "'\" -f -a " << kind_name(*kind) << " -d "
          << fish_quoted(kind->summary) << "\n";
  out << "complete -c octet -n \"__octet_command 'help'\" -f -a " << fish_quoted(first_names(families)) << "\n";
  for (const CommandText& command : commands)
    for (const OptionText& option : command.options) {
      const std::string begin = "complete -c octet -n \"__octet_command '" + command.name + "'\"";
      const std::string words = option.words.empty() ? "" : " -a " + fish_quoted(schema::join(option.words, " "));
      if (option.by_place) {
        if (!words.empty()) out << begin << words << "\n";
        continue;
      }
      out << begin;
      for (const std::string& name : option.names)
        out << (name.starts_with("--") ? " -l " : " -s ") << name.substr(name.starts_with("--") ? 2 : 1);
      if (!option.value.empty()) out << (option.takes_path ? " -r -F" : " -x") << words;
      out << " -d " << fish_quoted(first_sentence(option.help)) << "\n";
    }
  return out.str();
}

}  // namespace octet::cli
