// Dataset files made in memory, and a directory to put files in.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "image_bytes.h"

namespace octet::data {

inline std::string gzip_bytes(const std::string& bytes) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, bytes.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  OCTET_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline std::string idx_bytes(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (uint32_t size : sizes) out += big_endian(size);
  return out + values;
}

// A test with a directory of its own, removed at its end.
class DirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 str("octet-data-", ::getpid(), "-", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path put(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::filesystem::path directory_;
};

// What `action` complains about; empty when it does not.
template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

}  // namespace octet::data
