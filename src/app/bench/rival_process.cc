#include "app/bench/rival_process.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octet::app {

RivalProcess::RivalProcess(const Options& options)
    : process_({.flag = "--compare",
                .peer = options.peer,
                .model = options.model,
                .threads = options.threads,
                .batch = options.batch,
                .mode = options.throughput ? "throughput" : "latency",
                .environment = options.environment}) {}

std::vector<double> RivalProcess::turn(int runs, double milliseconds) {
  char request[64];
  std::snprintf(request, sizeof request, "%d %.3f", runs, milliseconds);
  process_.send(request);
  const nlohmann::json times = nlohmann::json::parse(process_.read_line(), nullptr, false);
  if (!times.is_array() || times.empty()) fail(process_.name(), " stopped while it was measured");
  return times.get<std::vector<double>>();
}

}  // namespace octet::app
