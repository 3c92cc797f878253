// Calls of libraries that damaged files can crash, in a process of their own.
#pragma once
#include <functional>
#include <string>

#include "checkpoint/safetensors.h"

namespace octet::weights {

// What `read` returns. It runs in a fork of this process that ends with it; a UserError comes back as one that starts
// with `origin`. UserError, too, where the fork ends by a signal or computes for more than a minute. `read` may use
// neither threads nor locks that other threads of this process hold.
checkpoint::NamedTensors read_guarded(const std::function<checkpoint::NamedTensors()>& read, const std::string& origin);

}  // namespace octet::weights
