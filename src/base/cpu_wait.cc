#include "base/cpu_wait.h"

#include <stdlib.h>

#include <fstream>
#include <system_error>

namespace octet {

namespace fs = std::filesystem;

std::optional<int64_t> cpu_wait_of_thread(const fs::path& folder) {
  std::ifstream in(folder / "schedstat");
  int64_t ran = 0, waited = 0;
  if (in >> ran >> waited && waited >= 0) return waited;
  return std::nullopt;
}

std::optional<int64_t> cpu_wait_of_threads(const fs::path& folder) {
  std::error_code error;
  std::optional<int64_t> sum;
  for (fs::directory_iterator thread(folder, error), end; !error && thread != end; thread.increment(error))
    if (const auto waited = cpu_wait_of_thread(thread->path())) sum = sum.value_or(0) + *waited;
  return sum;
}

std::optional<double> load_average() {
  double load = 0;
  if (::getloadavg(&load, 1) == 1) return load;
  return std::nullopt;
}

}  // namespace octet
