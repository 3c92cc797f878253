// Files that may be compressed with gzip.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace octet::data {

// `bytes` unchanged, or unpacked where they begin with the gzip signature. Memory grows with what is really unpacked,
// up to `max_size`. UserError, naming `name`, for truncated or damaged streams and for more than `max_size` bytes.
std::string unpack_gzip(std::string bytes, const std::string& name, size_t max_size = size_t{4} << 30);

}  // namespace octet::data
