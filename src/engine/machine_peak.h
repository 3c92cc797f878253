// What this machine can do at most, measured in a few milliseconds.
#pragma once
#include <string>

#include "base/cpu_features.h"

namespace octet::engine {

struct MachinePeak {
  double int8_gmac_per_s = 0, float_gmac_per_s = 0;  // of all the threads together
  std::string int8_instruction, float_instruction;   // that was timed
};

// Runs the loops of kernels/peak.h on `threads` threads at once, several times for 5 ms, and takes the best. It counts
// the threads' own CPU time, so a busy machine does not lower it (a lower clock does).
MachinePeak measure_peak(Isa isa, int threads);

// How long a cache line takes from one thread to another and back, in ns; 0 where there is one CPU. Threads that share
// a layer wait for each other and read each other's rows at this price, and a virtual machine's processors may be moved
// apart: 85 ns where two Zen 5 cores share a third-level cache, 450 where they do not. Takes a few milliseconds.
double measure_line_exchange_ns();

}  // namespace octet::engine
