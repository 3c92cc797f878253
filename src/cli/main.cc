#include "base/command_line.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  octet::remember_command_line({argv + 1, argv + argc});
  return octet::cli::run_program({argv + 1, argv + argc});
}
