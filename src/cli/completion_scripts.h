// Scripts with which shells complete the command lines of octet.
#pragma once
#include <string>
#include <vector>

#include "cli/command_text.h"

namespace octet::cli {

std::string bash_completions(const std::vector<CommandText>& commands);
std::string zsh_completions(const std::vector<CommandText>& commands);
std::string fish_completions(const std::vector<CommandText>& commands);

}  // namespace octet::cli
