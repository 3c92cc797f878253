#include "base/records.h"

#include <array>

#include "base/error.h"

namespace octet {
namespace {

constexpr size_t kHeader = 12, kFooter = kRecordFooter;  // bytes around a payload

template <typename Integer>
void append_little_endian(std::string& out, Integer value) {
  for (size_t i = 0; i < sizeof(Integer); ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

template <typename Integer>
Integer little_endian(std::string_view bytes) {
  Integer value = 0;
  for (size_t i = sizeof(Integer); i-- > 0;) value = static_cast<Integer>(value << 8 | static_cast<uint8_t>(bytes[i]));
  return value;
}

// tables[k][b]: what byte b does to the checksum when k bytes follow it, so that eight bytes are taken at a time.
using Tables = std::array<std::array<uint32_t, 256>, 8>;
Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    t[0][i] = c;
  }
  for (size_t k = 1; k < t.size(); ++k)
    for (size_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 0xff];
  return t;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const Tables tables = make_tables();
  uint32_t crc = ~uint32_t{0};
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const auto low = little_endian<uint32_t>(bytes) ^ crc;
    const auto high = little_endian<uint32_t>(bytes.substr(4));
    crc = 0;
    for (size_t i = 0; i < 4; ++i) crc ^= tables[7 - i][low >> (8 * i) & 0xff] ^ tables[3 - i][high >> (8 * i) & 0xff];
  }
  for (const char b : bytes) crc = crc >> 8 ^ tables[0][(crc ^ static_cast<uint8_t>(b)) & 0xff];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::string framed_record(std::string_view payload) {
  std::string record;
  record.reserve(kHeader + payload.size() + kFooter);
  append_little_endian(record, static_cast<uint64_t>(payload.size()));
  append_little_endian(record, masked_crc32c(record));
  record += payload;
  append_little_endian(record, masked_crc32c(payload));
  return record;
}

bool payload_holds(std::string_view bytes) {
  if (bytes.size() < kFooter) return false;
  const std::string_view payload = bytes.substr(0, bytes.size() - kFooter);
  return little_endian<uint32_t>(bytes.substr(payload.size())) == masked_crc32c(payload);
}

std::optional<std::string_view> RecordReader::next() {
  if (at_ == bytes_.size()) return std::nullopt;
  const std::string_view rest = bytes_.substr(at_);
  const auto refuse = [&](const auto&... why) { fail(name_, ": record ", count_ + 1, " (byte ", at_, "): ", why...); };
  if (rest.size() < kHeader) refuse("the file ends in its header; is it cut off?");
  if (little_endian<uint32_t>(rest.substr(8)) != masked_crc32c(rest.substr(0, 8)))
    refuse("the checksum of its length does not hold; the file is damaged or no TFRecord file");
  const auto length = little_endian<uint64_t>(rest);
  if (rest.size() - kHeader < kFooter || length > rest.size() - kHeader - kFooter)
    refuse("it has ", length, " bytes, and ", rest.size() - kHeader, " are left of the file; is it cut off?");
  const std::string_view payload = rest.substr(kHeader, length);
  if (check_ == RecordCheck::kAll && !payload_holds(rest.substr(kHeader, length + kFooter)))
    refuse("the checksum of its ", length, " bytes does not hold; the file is damaged");
  place_ = at_;
  at_ += kHeader + length + kFooter;
  ++count_;
  return payload;
}

}  // namespace octet
