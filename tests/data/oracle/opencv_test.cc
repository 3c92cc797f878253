// PNG, BMP, PPM and PGM files of every kind against OpenCV's readers, bit for bit.
#include <gtest/gtest.h>
#include <png.h>

#include <opencv2/imgcodecs.hpp>
#include <random>
#include <string>
#include <vector>

#include "data/image.h"
#include "data/image_write.h"

namespace octet::data {
namespace {

using Random = std::minstd_rand;

std::string random_bytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

std::string little_endian(uint32_t v, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(v >> (8 * i));
  return out;
}

// As RGB or gray, of what OpenCV reads from a file; empty where it refuses it.
Image by_opencv(const std::string& bytes, int channels) {
  const cv::Mat raw(1, static_cast<int>(bytes.size()), CV_8U, const_cast<char*>(bytes.data()));
  const cv::Mat mat =
      cv::imdecode(raw, (channels == 1 ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR) | cv::IMREAD_IGNORE_ORIENTATION);
  Image image{mat.rows, mat.cols, channels, {}};
  for (int y = 0; y < mat.rows; ++y)
    for (int x = 0; x < mat.cols; ++x)
      for (int c = 0; c < channels; ++c) image.pixels.push_back(mat.ptr<uint8_t>(y)[x * channels + channels - 1 - c]);
  return image;
}

void expect_as_opencv(const std::string& bytes) {
  for (int channels : {1, 3}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    const Image expected = by_opencv(bytes, channels);
    ASSERT_GT(expected.height, 0);
    const Image image = decode_image(std::as_bytes(std::span(bytes)), {.channels = channels});
    EXPECT_EQ(image.height, expected.height);
    EXPECT_EQ(image.width, expected.width);
    EXPECT_EQ(image.pixels, expected.pixels);
  }
}

struct PngKind {
  int color = PNG_COLOR_TYPE_RGB, depth = 8;
  bool interlaced = false, transparent = false;
  double gamma = 0;  // 0: not named
};

std::string random_png(Random& random, int height, int width, const PngKind& kind) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp to, png_bytep from, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<const char*>(from), size);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, kind.depth, kind.color,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette(size_t{1} << std::min(kind.depth, 8));
  for (png_color& color : palette)
    color = {static_cast<png_byte>(random()), static_cast<png_byte>(random()), static_cast<png_byte>(random())};
  std::vector<png_byte> alpha = {0, 128, 255, 7};
  alpha.resize(std::min<size_t>(alpha.size(), palette.size()));
  png_color_16 transparent = {};
  if (kind.color == PNG_COLOR_TYPE_PALETTE) {
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
    if (kind.transparent) png_set_tRNS(png, info, alpha.data(), static_cast<int>(alpha.size()), nullptr);
  } else if (kind.transparent) {
    png_set_tRNS(png, info, nullptr, 0, &transparent);
  }
  if (kind.gamma > 0) png_set_gAMA(png, info, kind.gamma);
  png_write_info(png, info);
  const size_t row_bytes = png_get_rowbytes(png, info);
  std::string rows = random_bytes(random, row_bytes * height);
  std::vector<png_bytep> pointers;
  for (int y = 0; y < height; ++y) pointers.push_back(reinterpret_cast<png_bytep>(rows.data()) + y * row_bytes);
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

TEST(OpenCv, ReadsPngAlike) {
  Random random(1);
  const std::vector<std::pair<int, std::vector<int>>> kinds = {{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                                                               {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
                                                               {PNG_COLOR_TYPE_RGB, {8, 16}},
                                                               {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                                                               {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}};
  for (const auto& [color, depths] : kinds)
    for (int depth : depths)
      for (bool interlaced : {false, true})
        for (bool transparent : {false, true})
          for (double gamma : {0.0, 0.45455, 0.8}) {
            if (transparent && (color & PNG_COLOR_MASK_ALPHA) != 0) continue;
            SCOPED_TRACE(testing::Message() << "color type " << color << ", depth " << depth << ", interlaced "
                                            << interlaced << ", transparent " << transparent << ", gamma " << gamma);
            const int height = 1 + static_cast<int>(random() % 20), width = 1 + static_cast<int>(random() % 20);
            expect_as_opencv(random_png(random, height, width, {color, depth, interlaced, transparent, gamma}));
          }
}

TEST(OpenCv, WritesPngAlike) {
  Random random(2);
  for (int channels : {1, 3}) {
    const std::string values = random_bytes(random, 33 * 57 * channels);
    const Image image{33, 57, channels, {values.begin(), values.end()}};
    const std::string bytes = encode_png(image);
    EXPECT_EQ(decode_image(std::as_bytes(std::span(bytes)), {.channels = channels}).pixels, image.pixels);
    EXPECT_EQ(by_opencv(bytes, channels).pixels, image.pixels);
    const cv::Mat mat = cv::imdecode(cv::Mat(1, static_cast<int>(bytes.size()), CV_8U, const_cast<char*>(bytes.data())),
                                     channels == 1 ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR);
    std::vector<uint8_t> by_opencv;
    ASSERT_TRUE(cv::imencode(".png", mat, by_opencv));
    EXPECT_EQ(bytes, std::string(by_opencv.begin(), by_opencv.end()));
  }
}

struct BmpKind {
  int bits = 24;
  uint32_t compression = 0;
  uint32_t header_bytes = 40;
  uint32_t colors = 0;  // that the palette is said to have; 0: all
  bool from_top = false;
  std::string masks;
};

std::string bmp(int height, int width, const BmpKind& kind, const std::string& palette, const std::string& pixels) {
  const std::string extra(kind.header_bytes > 40 ? kind.header_bytes - 40 : 0, '\0');
  const std::string header = kind.header_bytes == 12
                                 ? little_endian(12, 4) + little_endian(width, 2) + little_endian(height, 2) +
                                       little_endian(1, 2) + little_endian(kind.bits, 2)
                                 : little_endian(kind.header_bytes, 4) + little_endian(width, 4) +
                                       little_endian(kind.from_top ? -height : height, 4) + little_endian(1, 2) +
                                       little_endian(kind.bits, 2) + little_endian(kind.compression, 4) +
                                       std::string(12, '\0') + little_endian(kind.colors, 4) + std::string(4, '\0') +
                                       extra;
  const auto offset = static_cast<uint32_t>(14 + header.size() + kind.masks.size() + palette.size());
  return "BM" + little_endian(offset + static_cast<uint32_t>(pixels.size()), 4) + std::string(4, '\0') +
         little_endian(offset, 4) + header + kind.masks + palette + pixels;
}

TEST(OpenCv, ReadsBmpAlike) {
  Random random(3);
  const std::string masks_555 = little_endian(0x7c00, 4) + little_endian(0x3e0, 4) + little_endian(0x1f, 4);
  const std::string masks_565 = little_endian(0xf800, 4) + little_endian(0x7e0, 4) + little_endian(0x1f, 4);
  const std::string masks_888 = little_endian(0xff0000, 4) + little_endian(0xff00, 4) + little_endian(0xff, 4);
  const std::vector<BmpKind> kinds = {{1},
                                      {4},
                                      {8},
                                      {1, 0, 12},
                                      {4, 0, 12},
                                      {8, 0, 12},
                                      {24, 0, 12},
                                      {8, 0, 40, 17},
                                      {4, 0, 40, 5},
                                      {8, 0, 108},
                                      {24, 0, 124},
                                      {24, 0, 64},
                                      {16},
                                      {24},
                                      {32},
                                      {32, 0, 56},
                                      {16, 3, 40, 0, false, masks_555},
                                      {16, 3, 40, 0, true, masks_565},
                                      {32, 3, 40, 0, false, masks_888},
                                      {24, 0, 40, 0, true},
                                      {8, 0, 40, 0, true}};
  for (const BmpKind& kind : kinds)
    for (int width = 1; width <= 33; width += 4 + static_cast<int>(random() % 3)) {
      SCOPED_TRACE(testing::Message() << kind.bits << " bits, compression " << kind.compression << ", header "
                                      << kind.header_bytes << ", width " << width);
      const int height = 1 + static_cast<int>(random() % 7);
      const size_t colors = kind.bits > 8 ? 0 : kind.colors > 0 ? kind.colors : size_t{1} << kind.bits;
      const std::string palette = random_bytes(random, colors * (kind.header_bytes == 12 ? 3 : 4));
      const size_t pitch = (static_cast<size_t>(width) * kind.bits + 31) / 32 * 4;
      expect_as_opencv(bmp(height, width, kind, palette, random_bytes(random, pitch * height)));
    }
}

// Rows of random runs and literals; now and then the rest of a row is left out.
std::string random_run_lengths(Random& random, int height, int width, bool nibbles) {
  std::string out;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width;) {
      const int count = 1 + static_cast<int>(random() % std::min(width - x, 200));
      if (random() % 8 == 0) break;
      if (count > 2 && random() % 2 == 0) {
        const size_t bytes = nibbles ? (count + 1) / 2 : count;
        out += '\0' + little_endian(count, 1) + random_bytes(random, bytes) + std::string(bytes % 2, '\0');
      } else {
        out += little_endian(count, 1) + random_bytes(random, 1);
      }
      x += count;
    }
    out += std::string("\0\0", 2);
  }
  return out + std::string("\0\1", 2);
}

TEST(OpenCv, ReadsRunLengthsAlike) {
  Random random(4);
  for (int trial = 0; trial < 60; ++trial) {
    const int bits = trial % 2 == 0 ? 8 : 4, height = 1 + static_cast<int>(random() % 9),
              width = 1 + static_cast<int>(random() % 300);
    SCOPED_TRACE(testing::Message() << bits << " bits, " << height << " x " << width);
    const std::string palette = random_bytes(random, (size_t{1} << bits) * 4);
    expect_as_opencv(
        bmp(height, width, {bits, bits == 8 ? 1u : 2u}, palette, random_run_lengths(random, height, width, bits == 4)));
  }
  // A jump, and an end before the last row.
  const std::string jump(
      "\2\1"
      "\0\2\3\1"
      "\1\2"
      "\0\0"
      "\3\3"
      "\0\1",
      14);
  expect_as_opencv(bmp(5, 8, {8, 1}, random_bytes(random, 1024), jump));
}

TEST(OpenCv, ReadsPnmAlike) {
  Random random(5);
  for (const char* kind : {"P5", "P6"})
    for (int maximum : {255, 100, 65535, 1000}) {
      SCOPED_TRACE(testing::Message() << kind << " " << maximum);
      const int values = 7 * 11 * (kind[1] == '6' ? 3 : 1) * (maximum > 255 ? 2 : 1);
      expect_as_opencv(std::string(kind) + "\n# a remark\n7 11\n" + std::to_string(maximum) + "\n" +
                       random_bytes(random, values));
    }
}

}  // namespace
}  // namespace octet::data
