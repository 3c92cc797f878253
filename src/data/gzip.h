// Files that may be compressed with gzip, unpacked piece by piece: no more than a reader asks for.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace octet::data {

// Fills the buffer from the front and says with how many bytes; 0 at the end.
using ByteSource = std::function<size_t(std::span<char>)>;

class GzipReader {
 public:
  // Plain bytes come through as they are, packed ones (known by the gzip signature) unpacked. `name` is for messages.
  GzipReader(ByteSource source, std::string name);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // The next `count` bytes, or what is left of them. Memory grows with what is really there. At the end of the data,
  // when less comes back, all checksums have been checked. UserError for truncated or damaged streams.
  std::string read(size_t count);

 private:
  struct Inflater;
  bool refill();
  size_t unpack(std::span<char> out);

  ByteSource source_;
  std::string name_, packed_;
  size_t begin_ = 0, end_ = 0;          // of what is left in packed_
  std::unique_ptr<Inflater> inflater_;  // none: plain
  bool member_done_ = false;
};

}  // namespace octet::data
