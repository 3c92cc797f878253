// What this process may use of the machine: CPUs, by its affinity mask and the bandwidth quotas of its control groups,
// and the cache of each.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace octet {

// CPUs of the affinity mask of this thread, ascending; empty where the system does not say.
std::vector<int> allowed_cpus();

// The smallest CPU bandwidth, in CPUs (0.5: half of one), that a control group of the process grants: of its own group
// and every group above it, in version 2 and version 1 of the interface. `membership` is the text of /proc/self/cgroup,
// `mount` the folder of the control groups. Infinity where nothing limits it.
double cgroup_cpu_quota(const std::string& membership, const std::filesystem::path& mount);

// How many threads can run at a time: the affinity mask, and the quota rounded down (a thread more would use the quota
// up before the end of each period and stop all of them until the next), at least 1.
int available_cpus();

// Lets this thread run on that CPU alone. False where the system does not allow it.
bool pin_this_thread(int cpu);

// Lets this thread run on those CPUs. False where the system does not allow it.
bool allow_this_thread(const std::vector<int>& cpus);

// Of one CPU's second-level cache; 256 KiB where the system does not say.
int64_t second_level_cache_bytes();

}  // namespace octet
