// --accuracy-drop, --latency-budget, --size-budget and --best-method of the commands that quantize after training.
#pragma once
#include <string>

#include "app/accuracy_search.h"

namespace CLI {
class App;
}

namespace octet::cli {

struct BoundFlags {
  double drop = -1, ms = 0, mebibytes = 0;  // as here: not given

  bool best_method = false;

  bool given() const { return drop >= 0 || ms > 0 || mebibytes > 0 || best_method; }
  app::SearchBounds bounds() const;
};
// `judged_by`: what measures, for the help. Each excludes --cal_cache_file, which the command must have already.
void add_bound_flags(CLI::App& app, BoundFlags& flags, const std::string& judged_by);
// Their names. They need LibTorch (Command::only_there).
inline constexpr const char* kBoundFlags[] = {"--accuracy-drop", "--latency-budget", "--size-budget", "--best-method"};

// Prints what was tried, and writes it as JSON to `json` (empty: nowhere). UserError (exit 3) where a bound does not
// hold.
void report_search(const app::AccuracySearch& search, const BoundFlags& flags, const std::string& json);

}  // namespace octet::cli
