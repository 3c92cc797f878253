#include "cli/waiting_threads.h"

#include <cstdlib>

namespace octet::cli {

bool let_waiting_threads_sleep() {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return false;
  // Chosen with bench/training_under_load.sh: sleeping at once costs speed on an idle machine, spinning for longer
  // costs it on a busy one.
  return setenv("GOMP_SPINCOUNT", OCTET_GOMP_SPINCOUNT, 0) == 0;
}

}  // namespace octet::cli
