// Image and dataset files made in memory, and a directory to put them in.
#pragma once
#include <gtest/gtest.h>
#include <turbojpeg.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/image.h"

namespace octet::data {

// A smooth picture with something in every channel; `variant` makes different ones.
inline Image test_image(int height, int width, int channels, int variant = 0) {
  Image image{height, width, channels, {}};
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++)
      for (int c = 0; c < channels; c++)
        image.pixels.push_back(static_cast<uint8_t>((40 + 3 * x + 2 * y + 37 * c + 11 * variant) % 256));
  return image;
}

inline std::string jpeg_bytes(const Image& image) {
  const tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  const int status = tjCompress2(handle, image.pixels.data(), image.width, 0, image.height,
                                 image.channels == 1   ? TJPF_GRAY
                                 : image.channels == 3 ? TJPF_RGB
                                                       : TJPF_CMYK,
                                 &data, &size, image.channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 95, 0);
  OCTET_CHECK(status == 0, tjGetErrorStr2(handle));
  std::string out(reinterpret_cast<char*>(data), size);
  tjFree(data);
  tjDestroy(handle);
  return out;
}

inline std::string big_endian(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
}

inline std::string png_bytes(const Image& image) {
  const auto chunk = [](const std::string& body) {  // type and data
    const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return big_endian(static_cast<uint32_t>(body.size() - 4)) + body + big_endian(static_cast<uint32_t>(crc));
  };
  std::string rows;
  for (int y = 0; y < image.height; y++)
    rows += '\0' + std::string(reinterpret_cast<const char*>(image.row(y)), image.width * image.channels);
  std::string packed(::compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  const std::string header = "IHDR" + big_endian(image.width) + big_endian(image.height) + '\x08' +
                             (image.channels == 1 ? '\0' : '\x02') + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + chunk(header) + chunk("IDAT" + packed) + chunk("IEND");
}

inline std::string pnm_bytes(const Image& image) {
  return str(image.channels == 1 ? "P5" : "P6", "\n# made by a test\n", image.width, " ", image.height, "\n255\n") +
         std::string(image.pixels.begin(), image.pixels.end());
}

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
