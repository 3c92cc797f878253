// How long threads were ready to run and had no CPU, because others ran on it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace octet {

// Nanoseconds since the thread was made, as the second number of `schedstat` in its folder under /proc has it; nothing
// where the system does not say.
std::optional<int64_t> cpu_wait_of_thread(const std::filesystem::path& folder = "/proc/thread-self");

// Of all threads of a process that live now: `folder` has one folder for each.
std::optional<int64_t> cpu_wait_of_threads(const std::filesystem::path& folder = "/proc/self/task");

// Threads that run or are ready to run, a mean over the last minute (/proc/loadavg).
std::optional<double> load_average();

}  // namespace octet
