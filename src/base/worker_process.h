// What a process that is one of several workers on a machine tells the rest of the program.
#pragma once
#include <string>

namespace octet {

// It shares the CPUs with so many: available_cpus() is its part from now on, at least 1.
void share_cpus(int processes);

// Stands before every further message of the log: "rank 1: ".
void set_log_prefix(const std::string& prefix);

}  // namespace octet
