#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"

namespace octet::data {
namespace {

struct Inflater {
  z_stream stream{};
  explicit Inflater(const std::string& name) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    require(inflateInit2(&stream, kGzipOnly) == Z_OK, name, ": zlib could not be initialised");
  }
  ~Inflater() { inflateEnd(&stream); }
};

}  // namespace

std::string unpack_gzip(std::string bytes, const std::string& name, size_t max_size) {
  if (bytes.size() < 2 || bytes[0] != '\x1f' || bytes[1] != '\x8b') return bytes;
  Inflater inflater(name);
  z_stream& z = inflater.stream;
  std::string out;
  std::string chunk(size_t{1} << 16, '\0');
  size_t consumed = 0;  // zlib counts in 32 bits, files are longer
  for (;;) {
    if (z.avail_in == 0) {
      const size_t n = std::min<size_t>(bytes.size() - consumed, size_t{1} << 30);
      if (n == 0) fail(name, ": the gzip data ends early (", bytes.size(), " bytes); fetch the file again");
      z.next_in = reinterpret_cast<Bytef*>(bytes.data() + consumed);
      z.avail_in = static_cast<uInt>(n);
      consumed += n;
    }
    z.next_out = reinterpret_cast<Bytef*>(chunk.data());
    z.avail_out = static_cast<uInt>(chunk.size());
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      fail(name, ": the gzip data is damaged (", z.msg ? z.msg : "wrong checksum or header", "); fetch the file again");
    out.append(chunk.data(), chunk.size() - z.avail_out);
    require(out.size() <= max_size, name, ": unpacks to more than ", max_size, " bytes");
    if (status == Z_STREAM_END) {
      if (z.avail_in == 0 && consumed == bytes.size()) return out;
      // A gzip file may hold several members, one after the other.
      require(inflateReset(&z) == Z_OK, name, ": zlib could not be reset");
    }
  }
}

}  // namespace octet::data
