// How the threads of OpenMP wait for each other in the programs that hold LibTorch.
#pragma once

namespace octet::cli {

// Puts GOMP_SPINCOUNT into the environment, so that a waiting thread spins for 0.8 ms or so, whatever a look takes this
// CPU, and then sleeps. By libgomp's default it spins for several times that, and where another process has a CPU it
// keeps the thread from running that it waits for. Does nothing where the user has chosen (GOMP_SPINCOUNT,
// OMP_WAIT_POLICY). Returns whether the environment changed: libgomp reads it when it is loaded, so only a program
// started afterwards waits in this way. Results do not depend on it.
bool let_waiting_threads_sleep();

}  // namespace octet::cli
