// Loops over independent pieces on a few short-lived threads, for work of milliseconds outside of inference.
#pragma once
#include <cstdint>
#include <functional>

namespace octet {

// Calls work(i) once for every i in 0..count-1 and returns when all are done: on up to `threads` threads, the caller's
// included, or on fewer where the system refuses them. `work` must not throw.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& work);

}  // namespace octet
