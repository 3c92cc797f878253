#include "cli/rules_flag.h"

#include <CLI/CLI.hpp>

#include "cli/flags.h"

namespace octet::cli {

void add_rules_flag(CLI::App& app, std::vector<std::string>& rules) {
  CLI::Option* option =
      app.add_option(
             "--rules", rules,
             "Where quantizers go: a family of networks (default: auto, which looks at the graph), or as another "
             "tool places them: tao, dla (every tensor), tfmot (outputs, asymmetric); repeatable, the union")
          ->allow_extra_args(false);
  limit_to<quant::PlacementRule>(option);
}

void take_rules(const std::vector<std::string>& given, std::vector<quant::PlacementRule>& rules) {
  if (given.empty()) return;
  rules.clear();
  for (const std::string& name : given) rules.push_back(schema::parse_enum<quant::PlacementRule>("--rules", name));
}

}  // namespace octet::cli
