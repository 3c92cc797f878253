#include "data/image.h"

#include <gmock/gmock.h>

#include <cmath>

#include "data/image_header.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::HasSubstr;

Image decode(const std::string& bytes, const DecodeOptions& options = {}) {
  return decode_image(std::as_bytes(std::span(bytes)), options);
}

std::string reason_of(const std::string& bytes, const DecodeOptions& options = {}) {
  try {
    decode(bytes, options);
  } catch (const DecodeError& error) {
    return error.what();
  }
  return {};
}

double mean_difference(const Image& a, const Image& b) {
  OCTET_CHECK(a.pixels.size() == b.pixels.size());
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

TEST(DecodeImage, LosslessFormatsGiveTheSamePixels) {
  const Image color = test_image(13, 21, 3), gray = test_image(9, 7, 1);
  for (const std::string& bytes : {png_bytes(color), pnm_bytes(color), bmp_bytes(color), webp_bytes(color)}) {
    const Image image = decode(bytes);
    EXPECT_EQ(image.height, 13);
    EXPECT_EQ(image.width, 21);
    EXPECT_EQ(image.pixels, color.pixels);
  }
  EXPECT_EQ(decode(png_bytes(gray), {.channels = 1}).pixels, gray.pixels);
  EXPECT_EQ(decode(pnm_bytes(gray), {.channels = 1}).pixels, gray.pixels);
  EXPECT_EQ(decode(webp_bytes(color), {.channels = 1}).pixels, convert_channels(color, 1).pixels);
  EXPECT_EQ(decode(png_bytes(gray)).pixels, convert_channels(gray, 3).pixels);
}

TEST(DecodeImage, JpegIsCloseToTheOriginal) {
  Image smooth{32, 48, 3, {}};
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 48; ++x)
      for (int c = 0; c < 3; ++c) smooth.pixels.push_back(static_cast<uint8_t>(20 + 2 * x + y + 30 * c));
  const Image image = decode(jpeg_bytes(smooth));
  EXPECT_EQ(image.height, 32);
  EXPECT_EQ(image.channels, 3);
  EXPECT_LT(mean_difference(image, smooth), 2.0);
  EXPECT_LT(mean_difference(decode(jpeg_bytes(smooth), {.channels = 1}), convert_channels(smooth, 1)), 2.0);
}

TEST(DecodeImage, CmykJpegBecomesRgb) {
  Image cmyk{16, 16, 4, {}};  // inverted, as Adobe writes it: 255 is no ink
  for (int i = 0; i < 256; ++i) cmyk.pixels.insert(cmyk.pixels.end(), {200, 100, 50, 128});
  const Image image = decode(jpeg_bytes(cmyk));
  ASSERT_EQ(image.channels, 3);
  EXPECT_NEAR(image.pixels[0], 200 * 128 / 255, 3);
  EXPECT_NEAR(image.pixels[1], 100 * 128 / 255, 3);
  EXPECT_NEAR(image.pixels[2], 50 * 128 / 255, 3);
}

TEST(DecodeImage, ScalesJpegDownToTheSmallestSizeThatIsLargeEnough) {
  const std::string bytes = jpeg_bytes(test_image(400, 600, 3));
  EXPECT_EQ(decode(bytes, {.min_decode_side = 200}).height, 200);
  EXPECT_EQ(decode(bytes, {.min_decode_side = 201}).height, 250);
  EXPECT_EQ(decode(bytes, {.min_decode_side = 1000}).height, 400);
}

TEST(DecodeImage, DamagedFilesAreErrorsWithAReason) {
  const std::string jpeg = jpeg_bytes(test_image(64, 64, 3)), png = png_bytes(test_image(64, 64, 3));
  EXPECT_THAT(reason_of(""), HasSubstr("empty"));
  EXPECT_THAT(reason_of("hello"), HasSubstr("first bytes"));
  EXPECT_THAT(reason_of(jpeg.substr(0, jpeg.size() / 2)), HasSubstr("damaged"));
  EXPECT_THAT(reason_of(jpeg.substr(0, 10)), HasSubstr("header"));
  EXPECT_THAT(reason_of(png.substr(0, 20)), HasSubstr("header says"));
  EXPECT_THAT(reason_of(pnm_bytes(test_image(8, 8, 3)).substr(0, 40)), HasSubstr("damaged"));
  const std::string webp = webp_bytes(test_image(64, 64, 3));
  EXPECT_THAT(reason_of(webp.substr(0, webp.size() - 10)), HasSubstr("damaged"));
  EXPECT_THAT(reason_of(webp.substr(0, 14)), HasSubstr("header"));
  EXPECT_EQ(reason_of(jpeg), "");  // the decompressor has recovered
  // A strange byte between two markers is read over, as other programs do.
  EXPECT_EQ(reason_of(jpeg.substr(0, 2) + std::string("\x00", 1) + jpeg.substr(2)).find("remature"), std::string::npos);
}

TEST(DecodeImage, HeadersThatEndTooSoonAreErrors) {
  const std::string lossless = webp_bytes(test_image(13, 21, 3));
  for (std::string bytes : {std::string("P66 11 665 200 "), "BM" + std::string(12, '\0') + "\x28", std::string("P5"),
                            lossless.substr(0, 12), lossless.substr(0, 20), lossless.substr(0, 40),
                            png_bytes(test_image(4, 4, 3)).substr(0, 26)}) {
    SCOPED_TRACE(bytes);
    EXPECT_NE(reason_of(bytes), "");
    bytes.resize(128, '\0');
    EXPECT_NE(reason_of(bytes + std::string(200, '\x9e')), "");
  }
}

// 4 x 2 pixels of run-length codes for two colors.
std::string run_length_bmp(const std::string& codes) {
  const std::string palette("\1\2\3\0\x0a\x14\x1e\0", 8);  // blue, green, red and a byte of nothing
  return "BM" + std::string(8, '\0') + std::string("\x3e\0\0\0\x28\0\0\0\4\0\0\0\2\0\0\0\1\0\x08\0\1\0\0\0", 24) +
         std::string(12, '\0') + std::string("\2\0\0\0\0\0\0\0", 8) + palette + codes;
}

TEST(DecodeImage, BmpOfRunLengths) {
  // The lower row: two pixels of color 1, two that are left out; the upper one: three literal ones and a run of one.
  const std::string codes("\2\1\0\0\0\3\0\1\0\0\1\1\0\1", 14);
  EXPECT_THAT(decode(run_length_bmp(codes)).pixels,
              testing::ElementsAre(3, 2, 1, 30, 20, 10, 3, 2, 1, 30, 20, 10, 30, 20, 10, 30, 20, 10, 3, 2, 1, 3, 2, 1));
  EXPECT_THAT(decode(run_length_bmp(codes), {.channels = 1}).pixels, testing::ElementsAre(2, 22, 2, 22, 22, 22, 2, 2));
  EXPECT_THAT(reason_of(run_length_bmp(std::string("\5\1", 2))), HasSubstr("leaves the picture"));
  EXPECT_THAT(reason_of(run_length_bmp(std::string("\0\2\5\0", 4))), HasSubstr("leaves the picture"));
  EXPECT_THAT(reason_of(run_length_bmp(codes.substr(0, 7))), HasSubstr("ends too soon"));
}

TEST(DecodeImage, BmpThatIsNotSupportedSaysWhatItIs) {
  std::string bytes = bmp_bytes(test_image(3, 5, 3));
  bytes[30] = 4;  // a JPEG within
  EXPECT_THAT(reason_of(bytes), HasSubstr("24 bits with compression 4"));
  bytes[30] = 3;
  bytes[28] = 16;
  EXPECT_THAT(reason_of(bytes), HasSubstr("masks"));
  EXPECT_THAT(reason_of(bmp_bytes(test_image(30, 50, 3)).substr(0, 200)), HasSubstr("bytes of pixels are announced"));
}

// Masks in another order than usual, of which other readers make wrong colors.
TEST(DecodeImage, BmpOf32BitsKeepsToItsMasks) {
  const std::string header = std::string("\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0\x20\0\3\0\0\0", 24);
  std::string bytes = "BM" + std::string(8, '\0') + header + std::string(20, '\0') +
                      std::string("\xff\0\0\0\0\xff\0\0\0\0\xff\0", 12) + "\x01\x02\x03\x04";
  bytes[10] = 66;
  EXPECT_THAT(decode(bytes).pixels, testing::ElementsAre(1, 2, 3));
}

TEST(DecodeImage, RefusesHugePicturesBeforeAllocating) {
  EXPECT_THAT(reason_of("P6 2000000000 2000000000 255\n"), HasSubstr("limit"));
  EXPECT_THAT(reason_of(png_bytes(test_image(20, 20, 1)), {.channels = 1, .max_pixels = 399}), HasSubstr("limit"));
  EXPECT_THAT(reason_of(jpeg_bytes(test_image(20, 20, 1)), {.channels = 1, .max_pixels = 399}), HasSubstr("limit"));
  EXPECT_THAT(reason_of(webp_bytes(test_image(20, 20, 3)), {.max_pixels = 399}), HasSubstr("limit"));
}

TEST(DecodeImage, PnmWithoutASoundMaximumIsAnError) {
  for (const char* header : {"P5 2 2 0\n", "P5 2 2 65536\n", "P5 2 2 \n", "P5 2 2 255"})
    EXPECT_THAT(reason_of(header + std::string(9, 'x')), HasSubstr("maximum")) << header;
}

TEST(ImageHeader, ReadsSizes) {
  const auto header = [](const std::string& bytes) { return read_image_header(std::as_bytes(std::span(bytes))); };
  EXPECT_EQ(header(png_bytes(test_image(3, 5, 1))).width, 5);
  EXPECT_EQ(header("P5\n#c\n 12\t 7 255 ").width, 12);
  EXPECT_EQ(header("P5\n#c\n 12\t 7 255 ").height, 7);
  const std::string bmp = "BM" + std::string(12, '\0') + std::string("\x28\0\0\0\x05\0\0\0\xfd\xff\xff\xff", 12);
  EXPECT_EQ(header(bmp).format, ImageFormat::kBmp);
  EXPECT_EQ(header(bmp).width, 5);
  EXPECT_EQ(header(bmp).height, 3);
  EXPECT_EQ(header(webp_bytes(test_image(3, 5, 3))).format, ImageFormat::kWebp);
  EXPECT_EQ(header("P66 12 7 255 ").format, ImageFormat::kUnknown);
}

TEST(ConvertChannels, GrayIsLuma) {
  const Image image{1, 3, 3, {255, 0, 0, 0, 255, 0, 10, 10, 10}};
  EXPECT_THAT(convert_channels(image, 1).pixels, testing::ElementsAre(76, 150, 10));
}

}  // namespace
}  // namespace octet::data
