// --rules of the commands that place quantizers: quant.rules of the experiment.
#pragma once
#include <string>
#include <vector>

#include "quant/placement_rules.h"

namespace CLI {
class App;
}

namespace octet::cli {

void add_rules_flag(CLI::App& app, std::vector<std::string>& rules);
// Those of the flag; where it was not given, `rules` stay.
void take_rules(const std::vector<std::string>& given, std::vector<quant::PlacementRule>& rules);

}  // namespace octet::cli
