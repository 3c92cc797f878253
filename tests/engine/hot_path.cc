// After its first run a context allocates nothing and makes no system call: no lock that waits, no memory from the
// system, no yield. A filter of the kernel (seccomp) ends the process at the first call that is not allowed; malloc and
// operator new are counted. Argument 1: an engine file. Exit status 77: this system has no such filter.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <octet/engine.h>
#include <octet/octet.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

static std::atomic<long> allocations{0};

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
// operator new ends here, too.
void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* p, size_t size) {
  ++allocations;
  return __libc_realloc(p, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
}

namespace {

constexpr int kRuns = 200;

// Only these are left to all threads of the process: what ends it, and the clock (where reading it is a call at all).
bool install_filter() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

// Until every other thread of this process has computed for 10 ms. What starts a thread are system calls, too, and on a
// busy machine they come late; workers that wait awake get there by themselves.
void wait_for_started_threads() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    for (long nanoseconds = 0; nanoseconds < 10'000'000;) {
      if (!(std::ifstream(task.path() / "schedstat") >> nanoseconds)) break;  // a kernel that does not count it
      if (std::stol(task.path().filename()) == ::getpid()) break;
    }
}

// In a process of its own: runs with `threads` threads, at first freely, then behind the filter. Its exit status.
int watched(const char* path, int threads, bool c_interface) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    octet::ContextOptions options;
    options.threads = threads;
    options.idle_spin_us = 60'000'000;  // the workers wait awake, so that nobody needs to wake them
    const octet::Engine engine = octet::Engine::load(path);
    octet::Context context = engine.create_context(options);
    std::vector<float> x(engine.inputs()[0].size(), 0.5f), y(engine.outputs()[0].size());
    context.bind_input(0, x.data());
    context.bind_output(0, y.data());
    octet_engine* c_engine = nullptr;
    octet_context* c_context = nullptr;
    octet_context_options c_options = OCTET_CONTEXT_OPTIONS_INIT;
    c_options.threads = threads;
    c_options.idle_spin_us = options.idle_spin_us;
    if (c_interface && (octet_engine_load(path, &c_engine) != OCTET_OK ||
                        octet_context_create(c_engine, &c_options, &c_context) != OCTET_OK ||
                        octet_context_bind_input(c_context, 0, x.data()) != OCTET_OK ||
                        octet_context_bind_output(c_context, 0, y.data()) != OCTET_OK))
      ::_exit(3);
    const auto run = [&] {
      if (c_interface)
        octet_context_run(c_context);
      else
        context.run();
    };
    for (int i = 0; i < 3; ++i) run();
    wait_for_started_threads();
    const long before = allocations;
    if (!install_filter()) ::_exit(77);
    for (int i = 0; i < kRuns; ++i) run();
    ::_exit(allocations == before ? 0 : 4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int threads : {1, 2})
    for (bool c_interface : {false, true}) {
      const int status = watched(argv[1], threads, c_interface);
      std::printf("%d thread(s), %s: %s\n", threads, c_interface ? "C" : "C++",
                  status == 0    ? "no allocation and no system call in 200 runs"
                  : status == 77 ? "this system has no seccomp filters"
                  : status == 4  ? "memory was allocated"
                                 : "a system call was made");
      if (status != 0) return status;
    }
  return 0;
}
