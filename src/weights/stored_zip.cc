#include "weights/stored_zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace octet::weights {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr uint64_t kEndBytes = 22, kLocatorBytes = 20, kCentralBytes = 46, kLocalBytes = 30, kLongestComment = 0xffff;
constexpr uint16_t kExtra64 = 1, kStored = 0, kEncrypted = 1;
constexpr uint32_t kInExtra = 0xffffffff;  // the number stands in the 64-bit extension

// Little-endian numbers of a part of the file.
class Fields {
 public:
  Fields(std::string_view bytes, uint64_t at, uint64_t count) {
    if (at > bytes.size() || count > bytes.size() - at) fail("it ends too soon");
    bytes_ = bytes.substr(at, count);
  }
  template <typename T>
  T get(size_t at) const {
    T value;
    OCTET_CHECK(at + sizeof value <= bytes_.size());
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

 private:
  std::string_view bytes_;
};

struct Directory {
  uint64_t at, bytes, entries;
};

Directory find_directory(std::string_view bytes) {
  const uint64_t longest = kEndBytes + kLongestComment;
  const uint64_t from = bytes.size() > longest ? bytes.size() - longest : 0;
  for (uint64_t at = bytes.size() < kEndBytes ? 0 : bytes.size() - kEndBytes + 1; at-- > from;) {
    const Fields end(bytes, at, kEndBytes);
    if (end.get<uint32_t>(0) != kEnd) continue;
    Directory out{end.get<uint32_t>(16), end.get<uint32_t>(12), end.get<uint16_t>(10)};
    if (at >= kLocatorBytes) {
      const Fields locator(bytes, at - kLocatorBytes, kLocatorBytes);
      if (locator.get<uint32_t>(0) == kLocator64) {
        const Fields end64(bytes, locator.get<uint64_t>(8), 56);
        if (end64.get<uint32_t>(0) != kEnd64) fail("its 64-bit directory is damaged");
        out = {end64.get<uint64_t>(48), end64.get<uint64_t>(40), end64.get<uint64_t>(32)};
      }
    }
    return out;
  }
  fail("it has no directory: it was cut off");
}

// The numbers of an entry that did not fit 32 bits, in the order of the extension.
void widen(std::string_view extra, std::initializer_list<uint64_t*> numbers) {
  const bool any = std::any_of(numbers.begin(), numbers.end(), [](const uint64_t* n) { return *n == kInExtra; });
  if (!any) return;
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const Fields head(extra, at, 4);
    const uint64_t size = head.get<uint16_t>(2);
    if (head.get<uint16_t>(0) == kExtra64) {
      uint64_t value_at = at + 4;
      for (uint64_t* n : numbers) {
        if (*n != kInExtra) continue;
        *n = Fields(extra, value_at, 8).get<uint64_t>(0);
        value_at += 8;
      }
      return;
    }
    at += 4 + size;
  }
  fail("an entry lacks its 64-bit sizes");
}

}  // namespace

bool is_zip(std::string_view bytes) {
  return bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06");
}

StoredZip::StoredZip(std::string_view bytes) : bytes_(bytes) {
  const Directory directory = find_directory(bytes);
  uint64_t at = directory.at;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const Fields head(bytes, at, kCentralBytes);
    if (head.get<uint32_t>(0) != kCentral) fail("its directory is damaged");
    const uint64_t name_bytes = head.get<uint16_t>(28), extra_bytes = head.get<uint16_t>(30),
                   comment_bytes = head.get<uint16_t>(32);
    const Fields whole(bytes, at, kCentralBytes + name_bytes + extra_bytes + comment_bytes);
    const std::string name(bytes.substr(at + kCentralBytes, name_bytes));
    uint64_t size = head.get<uint32_t>(24), packed = head.get<uint32_t>(20), header = head.get<uint32_t>(42);
    widen(bytes.substr(at + kCentralBytes + name_bytes, extra_bytes), {&size, &packed, &header});
    if ((head.get<uint16_t>(8) & kEncrypted) != 0) fail("its entry ", name, " is encrypted");
    if (head.get<uint16_t>(10) != kStored || size != packed) fail("its entry ", name, " is compressed");
    if (!entries_.emplace(name, Entry{header, size, head.get<uint32_t>(16)}).second) fail("it has two entries ", name);
    at += kCentralBytes + name_bytes + extra_bytes + comment_bytes;
  }
}

std::vector<std::string> StoredZip::names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : entries_) out.push_back(name);
  return out;
}

std::string_view StoredZip::read(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail("it has no entry ", name);
  const Entry& entry = found->second;
  // Name and extension of the local header have lengths of their own.
  const Fields head(bytes_, entry.header, kLocalBytes);
  if (head.get<uint32_t>(0) != kLocal) fail("its entry ", name, " is not where the directory says");
  const uint64_t at = entry.header + kLocalBytes + head.get<uint16_t>(26) + head.get<uint16_t>(28);
  if (at > bytes_.size() || entry.size > bytes_.size() - at) fail("its entry ", name, " is cut off");
  const std::string_view data = bytes_.substr(at, entry.size);
  uLong crc = crc32(0, nullptr, 0);
  for (uint64_t done = 0; done < data.size();) {
    const uint64_t part = std::min<uint64_t>(data.size() - done, 1u << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(data.data()) + done, static_cast<uInt>(part));
    done += part;
  }
  if (crc != entry.crc) fail("its entry ", name, " is damaged: its checksum differs");
  return data;
}

}  // namespace octet::weights
