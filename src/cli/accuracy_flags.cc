#include "cli/accuracy_flags.h"

#include <CLI/App.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/accuracy_goal.h"
#include "base/error.h"
#include "base/output_guard.h"
#include "cli/flags.h"
#include "cli/json_output.h"

namespace octet::cli {
namespace {

constexpr double kMebibyte = 1 << 20;

// Which bound does not hold, and what to do.
std::string broken_bound(const app::AccuracySearch& search, const BoundFlags& flags) {
  const double mebibytes = static_cast<double>(search.bytes) / kMebibyte;
  if (flags.ms > 0 && search.ms > flags.ms)
    return str("the best that was found takes ", search.ms, " ms an image, more than --latency-budget ", flags.ms,
               "; nothing was written. Prune the network (octet prune), or allow more");
  if (flags.mebibytes > 0 && mebibytes > flags.mebibytes)
    return str("the best that was found has ", mebibytes, " MiB, more than --size-budget ", flags.mebibytes,
               "; nothing was written. Prune the network (octet prune), or allow more");
  return str("the best that was found loses ", search.lost(), " points, more than --accuracy-drop ", flags.drop,
             "; nothing was written. Train it quantization-aware (octet train --stage qat), or allow more");
}

}  // namespace

app::SearchBounds BoundFlags::bounds() const {
  app::SearchBounds out;
  if (drop >= 0) out.drop = drop;
  if (ms > 0) out.ms = ms;
  if (mebibytes > 0) out.bytes = static_cast<int64_t>(mebibytes * kMebibyte);
  out.methods = best_method;
  return out;
}

void add_bound_flags(CLI::App& app, BoundFlags& flags, const std::string& judged_by) {
  CLI::Option* const options[] = {
      add_number_flag(app, "--accuracy-drop", flags.drop, 0, 100,
                      "Lose at most so many points: tries equalization, bias correction and adaptive rounding, then "
                      "leaves the layers that lose most in float, as few as will do. Judged on " +
                          judged_by)
          ->type_name("POINTS"),
      add_number_flag(app, "--latency-budget", flags.ms, 0, 1e6,
                      "As accurate as may be where an image takes the engine at most so long on this machine: the same "
                      "steps, and as many layers in float as fit. With --accuracy-drop both must hold")
          ->type_name("MS"),
      add_number_flag(app, "--size-budget", flags.mebibytes, 0, 1e6,
                      "The same for the size of the ONNX file with the codes of weights")
          ->type_name("MIB"),
      app.add_flag("--best-method", flags.best_method,
                   "Calibrate by every method (max, mse, percentile, entropy, mix, ema) and take the one that does "
                   "best on " +
                       judged_by + ", before anything else that these flags try")};
  for (CLI::Option* option : options) option->excludes("--cal_cache_file");
}

void report_search(const app::AccuracySearch& search, const BoundFlags& flags, const std::string& json) {
  if (json != "-") std::cout << app::search_text(search);
  if (!json.empty()) write_json_output(json, app::search_json(search));
  if (!search.holds) throw UserError(broken_bound(search, flags), ExitCode::kCheckFailed);
}

}  // namespace octet::cli
