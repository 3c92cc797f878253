// Numbers of JSON files that nobody vouches for. nlohmann's own conversions take 2.7 for 2 and 2^63 for -2^63.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace octet::checkpoint {

// A whole number from `low` to `high`, both at least 0; UserError that names `what`.
inline int64_t whole_number(const nlohmann::json& j, int64_t low, int64_t high, const std::string& what) {
  if (!j.is_number_unsigned() || j.get<uint64_t>() < static_cast<uint64_t>(low) ||
      j.get<uint64_t>() > static_cast<uint64_t>(high))
    fail(what, " is not a whole number from ", low, " to ", high);
  return j.get<int64_t>();
}

inline double finite_number(const nlohmann::json& j, const std::string& what) {
  if (!j.is_number() || !std::isfinite(j.get<double>())) fail(what, " is not a number");
  return j.get<double>();
}

// JSON has no NaN: what is not finite is written as null.
inline double number_or_nan(const nlohmann::json& j, const std::string& what) {
  return j.is_null() ? std::nan("") : finite_number(j, what);
}

}  // namespace octet::checkpoint
