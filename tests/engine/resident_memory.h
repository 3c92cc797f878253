// How much memory this process has.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

// KiB of the resident set, as Linux counts them; 0 where it does not say.
inline int64_t resident_kb() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::atoll(line.c_str() + 6);
  return 0;
}
