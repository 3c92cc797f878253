#include "cli/accuracy_flags.h"

#include <CLI/App.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/accuracy_goal.h"
#include "base/error.h"
#include "base/output_guard.h"
#include "cli/flags.h"

namespace octet::cli {

CLI::Option* add_accuracy_drop_flag(CLI::App& app, double& drop, const std::string& judged_by) {
  return add_number_flag(app, "--accuracy-drop", drop, 0, 100,
                         "Lose at most so many points: tries equalization, bias correction and adaptive rounding, then "
                         "leaves the layers that lose most in float, as few as will do. Judged on " +
                             judged_by)
      ->type_name("POINTS");
}

void report_search(const app::AccuracySearch& search, double drop, const std::string& json) {
  if (json != "-") std::cout << app::search_text(search);
  if (!json.empty()) write_text_output(json, app::search_json(search).dump(1) + "\n");
  if (!search.holds)
    throw UserError(str("the best that was found loses ", search.lost(), " points, more than --accuracy-drop ", drop,
                        "; nothing was written. Train it quantization-aware (octet train --stage qat), or allow more"),
                    ExitCode::kCheckFailed);
}

}  // namespace octet::cli
