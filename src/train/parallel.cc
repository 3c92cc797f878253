#include "train/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <vector>

// What GCC makes of `#pragma omp parallel` (libgomp's manual, "Implementing PARALLEL construct"). Called by name, the
// team of threads is the one of LibTorch's kernels whatever compiles this; Clang's -fopenmp would bring a second one.
extern "C" void GOMP_parallel(void (*function)(void*), void* data, unsigned threads, unsigned flags);
extern "C" int omp_get_thread_num();
extern "C" int omp_get_num_threads();

namespace octet::train {
namespace {

struct Loop {
  int64_t count, part;
  const std::function<void(int64_t, int64_t)>& f;
  std::vector<std::exception_ptr> errors;  // of each part
};

// A team may be smaller than what was asked for (OMP_THREAD_LIMIT): a thread takes every so many parts.
void run_parts(void* data) {
  Loop& loop = *static_cast<Loop*>(data);
  for (size_t i = omp_get_thread_num(); i < loop.errors.size(); i += omp_get_num_threads()) {
    try {
      const int64_t begin = static_cast<int64_t>(i) * loop.part;
      loop.f(begin, std::min(loop.count, begin + loop.part));
    } catch (...) {
      loop.errors[i] = std::current_exception();
    }
  }
}

int64_t quotient_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& f) {
  if (count <= 0) return;
  // OpenMP keeps the number of threads for each thread apart; this one may not have been told yet.
  [[maybe_unused]] thread_local const bool told = (at::init_num_threads(), true);
  const int64_t parts = std::min<int64_t>(at::get_num_threads(), quotient_up(count, std::max<int64_t>(grain, 1)));
  if (parts <= 1 || at::in_parallel_region()) return f(0, count);
  const int64_t part = quotient_up(count, parts);
  Loop loop{count, part, f, std::vector<std::exception_ptr>(quotient_up(count, part))};
  GOMP_parallel(run_parts, &loop, static_cast<unsigned>(parts), 0);
  for (const std::exception_ptr& error : loop.errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace octet::train
