#include "cli/key_flags.h"

#include <CLI/App.hpp>

#include "base/files.h"
#include "cli/flags.h"
#include "schema/tree.h"

namespace octet::cli {

void KeyFlags::read(const schema::Section& section) const {
  schema::Node root =
      schema::parse_yaml(spec.empty() ? "" : read_file_or_pipe(spec), spec.empty() ? "the command line" : spec);
  for (const auto* assignments : {&overrides, &sets})
    for (const std::string& assignment : *assignments) schema::apply_override(root, assignment);
  schema::read_section(section, root, "", {});
}

void add_key_flags(CLI::App& app, KeyFlags& flags, const std::string& names, std::span<const KeyFlag> keys) {
  app.add_option(names, flags.spec, "YAML file")->type_name("SPEC");
  for (const KeyFlag& flag : keys) {
    CLI::Option* option = app.add_option_function<std::string>(
        flag.flag,
        [&flags, key = std::string(flag.key)](const std::string& value) {
          flags.overrides.push_back(key + "=" + value);
        },
        flag.help);
    if (const std::string type = flag.type; type.find('|') != std::string::npos)
      limit_to(option, type);
    else
      option->type_name(type);
  }
  app.add_option("--set", flags.sets, "Any key of SPEC, as --set seed=3 (repeatable)")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

}  // namespace octet::cli
