// octet diagnose as it is called: its flags and its help, which need no LibTorch, in front of the work, which does.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"

namespace octet::cli {

struct DiagnoseOptions {
  SpecFlags spec;
  std::string model, json;
  std::vector<std::string> images;
  int64_t count = 64, batch_size = 8, rows = 20;
  bool quick = false;
};

// The command, with what is to be done once its flags are read.
Command diagnose_command_with(std::function<ExitCode(const DiagnoseOptions&)> run);

}  // namespace octet::cli
