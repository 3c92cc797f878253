// Random initial weights, the same bits on every machine: each tensor draws from its own stream, seeded by the model's
// seed and the tensor's name, so a change elsewhere in the network does not move it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace octet::models {

std::vector<float> normal_values(int64_t count, double deviation, uint64_t seed, const std::string& name);
// Uniform in [-bound, bound).
std::vector<float> uniform_values(int64_t count, double bound, uint64_t seed, const std::string& name);

}  // namespace octet::models
