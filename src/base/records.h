// The framing of TFRecord and of TensorBoard's event files: each record is its length (8 bytes, little-endian), the
// masked CRC-32C of these 8 bytes, the payload, and the masked CRC-32C of that.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octet {

// CRC-32C (Castagnoli), and the form in which records hold it: rotated and shifted, as a checksum of bytes that hold
// checksums would be weak.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

// One record with `payload`, to be appended to a file.
std::string framed_record(std::string_view payload);

inline constexpr size_t kRecordFooter = 4;  // bytes behind a payload
// Whether the checksum behind a payload, which is the last bytes of `payload_and_footer`, holds.
bool payload_holds(std::string_view payload_and_footer);

// What is looked at of a record before it is handed out. The payloads of a file that holds images are not: they would
// all be read.
enum class RecordCheck { kAll, kHeader };

// Goes through the records of a file that lies in memory.
class RecordReader {
 public:
  // `name`: of the file, for messages.
  RecordReader(std::string_view bytes, std::string name, RecordCheck check = RecordCheck::kAll)
      : bytes_(bytes), name_(std::move(name)), check_(check) {}

  // The payload of the next record; nothing at the end. UserError, naming file, record and byte, where the rest is no
  // whole record or a checksum does not hold.
  std::optional<std::string_view> next();
  // How many were handed out.
  int64_t count() const { return count_; }
  // The first byte of the last one's header.
  size_t place() const { return place_; }

 private:
  std::string_view bytes_;
  std::string name_;
  RecordCheck check_;
  size_t at_ = 0, place_ = 0;
  int64_t count_ = 0;
};

}  // namespace octet
