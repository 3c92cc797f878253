#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace octet::data {

struct GzipReader::Inflater {
  z_stream stream{};
  explicit Inflater(const std::string& name) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    require(inflateInit2(&stream, kGzipOnly) == Z_OK, name, ": zlib could not be initialized");
  }
  ~Inflater() { inflateEnd(&stream); }
};

GzipReader::GzipReader(ByteSource source, std::string name) : source_(std::move(source)), name_(std::move(name)) {
  packed_.resize(size_t{1} << 16);
  while (end_ < 2) {  // a source may give one byte at a time
    const size_t n = source_(std::span(packed_).subspan(end_));
    if (n == 0) break;
    end_ += n;
  }
  if (end_ >= 2 && packed_[0] == '\x1f' && packed_[1] == '\x8b') inflater_ = std::make_unique<Inflater>(name_);
}

GzipReader::~GzipReader() = default;

bool GzipReader::refill() {
  if (begin_ < end_) return true;
  begin_ = 0;
  end_ = source_(packed_);
  return end_ > 0;
}

// At least one byte, or 0 at the end of the data.
size_t GzipReader::unpack(std::span<char> out) {
  if (!inflater_) {
    if (!refill()) return 0;
    const size_t n = std::min(out.size(), end_ - begin_);
    std::memcpy(out.data(), packed_.data() + begin_, n);
    begin_ += n;
    return n;
  }
  z_stream& z = inflater_->stream;
  for (;;) {
    if (!refill()) {
      require(member_done_, name_, ": the gzip data ends early; fetch the file again");
      return 0;
    }
    if (std::exchange(member_done_, false))  // a gzip file may hold several members, one after the other
      require(inflateReset(&z) == Z_OK, name_, ": zlib could not be reset");
    z.next_in = reinterpret_cast<Bytef*>(packed_.data() + begin_);
    z.avail_in = static_cast<uInt>(end_ - begin_);
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      fail(name_, ": the gzip data is damaged (", z.msg ? z.msg : "wrong checksum or header",
           "); fetch the file again");
    begin_ = end_ - z.avail_in;
    member_done_ = status == Z_STREAM_END;
    if (const size_t n = out.size() - z.avail_out) return n;
  }
}

std::string GzipReader::read(size_t count) {
  std::string out;
  while (out.size() < count) {
    const size_t done = out.size();
    // Doubles, so that a promise costs nothing before it is kept.
    out.resize(std::min(count, std::max<size_t>(2 * done, size_t{1} << 16)));
    const size_t room = out.size() - done;
    size_t filled = 0;
    while (filled < room) {
      const size_t n = unpack(std::span(out).subspan(done + filled, std::min<size_t>(room - filled, size_t{1} << 30)));
      if (n == 0) break;
      filled += n;
    }
    out.resize(done + filled);
    if (filled < room) break;
  }
  return out;
}

}  // namespace octet::data
