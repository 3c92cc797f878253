#include "base/records.h"

#include <gmock/gmock.h>

#include <vector>

#include "base/error.h"

namespace octet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The definition, bit by bit.
uint32_t plain_crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char b : bytes) {
    crc ^= static_cast<uint8_t>(b);
    for (int i = 0; i < 8; ++i) crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

// The payloads of all records, or what is wrong with them.
std::string joined(const std::string& bytes) {
  RecordReader reader(bytes, "x.tfrecord");
  std::string out;
  try {
    while (const auto payload = reader.next()) out += std::string(*payload) + ";";
  } catch (const UserError& error) {
    return error.what();
  }
  return out;
}

TEST(Records, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(""), 0u);
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(crc32c(bytes), plain_crc32c(bytes)) << i;
    bytes += static_cast<char>(i * 91 + 7);
  }
}

TEST(Records, ComeBack) {
  EXPECT_EQ(joined(framed_record("one") + framed_record("") + framed_record("three")), "one;;three;");
  EXPECT_EQ(joined(""), "");
}

TEST(Records, DamageIsFoundAndPlaced) {
  const std::string first = framed_record("one"), both = first + framed_record("second");
  for (size_t cut = 1; cut < both.size(); ++cut)
    if (cut != first.size()) {
      EXPECT_THAT(joined(both.substr(0, cut)), AllOf(HasSubstr("x.tfrecord: record "), HasSubstr("is it cut off?")))
          << cut;
    }
  for (size_t at = 0; at < both.size(); ++at)
    for (const char flip : {'\x01', '\x80'}) {
      std::string damaged = both;
      damaged[at] ^= flip;
      EXPECT_THAT(joined(damaged), HasSubstr("checksum")) << at;
    }
  std::string damaged = both;
  damaged[first.size() + 13] ^= 1;
  EXPECT_THAT(joined(damaged), HasSubstr(str("record 2 (byte ", first.size(), "): the checksum of its 6 bytes")));
}

// A file of images is gone through without reading them.
TEST(Records, PayloadsMayBeLeftToLater) {
  const std::string first = framed_record("one");
  std::string bytes = first + framed_record("second") + framed_record("");
  bytes[first.size() + 13] ^= 1;
  RecordReader reader(bytes, "x.tfrecord", RecordCheck::kHeader);
  std::vector<bool> hold;
  std::vector<size_t> places;
  while (const auto payload = reader.next()) {
    hold.push_back(payload_holds({payload->data(), payload->size() + kRecordFooter}));
    places.push_back(reader.place());
  }
  EXPECT_EQ(hold, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(places, (std::vector<size_t>{0, first.size(), first.size() + 22}));
  EXPECT_FALSE(payload_holds("abc"));
}

}  // namespace
}  // namespace octet
