// ZIP archives whose entries are stored as they are, as PyTorch writes them; compressed ones are refused.
// APPNOTE.TXT of PKWARE, version 6.3, with its 64-bit extensions.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace octet::weights {

bool is_zip(std::string_view bytes);

class StoredZip {
 public:
  // Reads the central directory. `bytes` outlive it. UserError that says what is wrong and names no file: no directory,
  // a place outside of the file, two entries of one name, one that is compressed or encrypted. Any bytes are safe.
  explicit StoredZip(std::string_view bytes);

  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return entries_.contains(name); }
  // UserError where there is none of this name, or its bytes do not have the checksum of the directory.
  std::string_view read(const std::string& name) const;

 private:
  struct Entry {
    uint64_t header, size;  // where its local header begins; its bytes
    uint32_t crc;
  };
  std::string_view bytes_;
  std::map<std::string, Entry> entries_;
};

}  // namespace octet::weights
