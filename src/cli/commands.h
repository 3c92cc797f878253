// The table of subcommands.
#pragma once
#include <vector>

#include "cli/command.h"

namespace octet::cli {

// In the order in which they are listed to people.
const std::vector<Command>& all_commands();

Command train_command();
Command calibrate_command();
Command prune_command();
Command quantize_command();
Command evaluate_command();
Command infer_command();
Command export_command();
Command compile_command();
Command compare_command();
Command bench_command();
Command verify_command();
Command diagnose_command();
Command convert_command();
Command convert_dataset_command();
Command convert_images_command();
Command convert_spec_command();
Command inspect_command();
Command lint_command();
Command report_command();
Command study_command();
Command models_command();
Command passes_command();
Command scenes_command();
Command sensitivity_command();
Command spec_command();
Command completions_command();
Command man_command();

}  // namespace octet::cli
