// --accuracy-drop of the commands that quantize after training.
#pragma once
#include <string>

#include "app/accuracy_search.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace octet::cli {

// `judged_by`: what measures, for the help.
CLI::Option* add_accuracy_drop_flag(CLI::App& app, double& drop, const std::string& judged_by);

// Prints what was tried, and writes it as JSON to `json` (empty: nowhere). UserError (exit 3) where the bar does not
// hold.
void report_search(const app::AccuracySearch& search, double drop, const std::string& json);

}  // namespace octet::cli
