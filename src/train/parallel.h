// Loops over the threads of LibTorch. Its own at::parallel_for is code in a header: a file that is compiled without
// OpenMP, as all of ours are, gets a plain loop on one thread of it, and says nothing.
#pragma once
#include <cstdint>
#include <functional>

namespace octet::train {

// Cuts [0, count) into as many parts as LibTorch has threads (set_torch_threads), none but the last shorter than
// `grain`, and runs f(begin, end) for each, one of them on the calling thread. Runs f(0, count) where that is one part,
// and within another loop. Returns when all have ended; throws the exception of the first part that threw.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& f);

}  // namespace octet::train
