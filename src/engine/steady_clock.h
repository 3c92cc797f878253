// The clock by which the engine waits and measures.
#pragma once
#include <chrono>
#include <cstdint>

namespace octet::engine {

// Nanoseconds of std::chrono::steady_clock.
inline int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace octet::engine
