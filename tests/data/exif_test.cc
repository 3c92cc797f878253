#include "data/exif.h"

#include <gmock/gmock.h>

#include "image_files.h"

namespace octet::data {
namespace {

using testing::ElementsAreArray;

std::string number(uint32_t value, int width, bool big) {
  std::string out;
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * (big ? width - 1 - i : i));
  return out;
}

// A TIFF with one entry, Orientation.
std::string tiff(int orientation, bool big = true, uint32_t type = 3) {
  return (big ? "MM" : "II") + number(42, 2, big) + number(8, 4, big) + number(1, 2, big) + number(0x112, 2, big) +
         number(type, 2, big) + number(1, 4, big) + number(static_cast<uint32_t>(orientation), type == 3 ? 2 : 4, big) +
         std::string(type == 3 ? 2 : 0, '\0') + number(0, 4, big);
}

std::string jpeg_with(const std::string& tiff, const std::string& jpeg) {
  const std::string body = std::string("Exif\0\0", 6) + tiff;
  return jpeg.substr(0, 2) + "\xFF\xE1" + number(static_cast<uint32_t>(body.size() + 2), 2, true) + body +
         jpeg.substr(2);
}

std::string png_with(const std::string& tiff, const std::string& png) {
  const std::string body = "eXIf" + tiff;
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  const size_t behind_header = 8 + 25;
  return png.substr(0, behind_header) + big_endian(static_cast<uint32_t>(tiff.size())) + body +
         big_endian(static_cast<uint32_t>(crc)) + png.substr(behind_header);
}

// A simple WebP becomes an extended one: VP8X says that EXIF follows.
std::string webp_with(const std::string& tiff, const std::string& webp, const Image& image) {
  const std::string chunks = "VP8X" + number(10, 4, false) + number(8, 4, false) +
                             number(static_cast<uint32_t>(image.width - 1), 3, false) +
                             number(static_cast<uint32_t>(image.height - 1), 3, false) + webp.substr(12) + "EXIF" +
                             number(static_cast<uint32_t>(tiff.size()), 4, false) + tiff;
  return "RIFF" + number(static_cast<uint32_t>(chunks.size() + 4), 4, false) + "WEBP" + chunks;
}

int orientation_of(const std::string& bytes) {
  return exif_orientation(std::as_bytes(std::span(bytes)));
}

// What Pillow's ImageOps.exif_transpose makes of 1 2 3 / 4 5 6.
struct Turned {
  int height;
  std::vector<uint8_t> pixels;
};
const Turned kPillow[9] = {{},
                           {2, {1, 2, 3, 4, 5, 6}},
                           {2, {3, 2, 1, 6, 5, 4}},
                           {2, {6, 5, 4, 3, 2, 1}},
                           {2, {4, 5, 6, 1, 2, 3}},
                           {3, {1, 4, 2, 5, 3, 6}},
                           {3, {4, 1, 5, 2, 6, 3}},
                           {3, {6, 3, 5, 2, 4, 1}},
                           {3, {3, 6, 2, 5, 1, 4}}};

TEST(Exif, TurnsAsPillowDoes) {
  const Image image{2, 3, 1, {1, 2, 3, 4, 5, 6}};
  for (int o = 1; o <= 8; ++o) {
    const std::string file = png_with(tiff(o), png_bytes(image));
    const auto bytes = std::as_bytes(std::span(file));
    const Image turned = decode_image(bytes, {.channels = 1, .exif_orientation = true});
    EXPECT_EQ(turned.height, kPillow[o].height) << o;
    EXPECT_EQ(turned.width, 6 / kPillow[o].height) << o;
    EXPECT_THAT(turned.pixels, ElementsAreArray(kPillow[o].pixels)) << o;
    EXPECT_EQ(decode_image(bytes, {.channels = 1}).pixels, image.pixels) << o;
  }
  // Pixels of three channels stay together.
  const Image colors{1, 2, 3, {1, 2, 3, 4, 5, 6}};
  EXPECT_THAT(oriented(colors, 6).pixels, ElementsAreArray({1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(oriented(colors, 8).pixels, ElementsAreArray({4, 5, 6, 1, 2, 3}));
}

TEST(Exif, IsFoundInEveryFormat) {
  const Image image = test_image(8, 12, 3);
  for (int o = 1; o <= 8; ++o)
    for (const bool big : {true, false}) {
      EXPECT_EQ(orientation_of(jpeg_with(tiff(o, big), jpeg_bytes(image))), o);
      EXPECT_EQ(orientation_of(jpeg_with(tiff(o, big, 4), jpeg_bytes(image))), o);
      EXPECT_EQ(orientation_of(png_with(tiff(o, big), png_bytes(image))), o);
      EXPECT_EQ(orientation_of(webp_with(tiff(o, big), webp_bytes(image), image)), o);
    }
  const std::string webp = webp_with(tiff(6), webp_bytes(image), image);
  const Image turned = decode_image(std::as_bytes(std::span(webp)), {.exif_orientation = true});
  EXPECT_EQ(turned.height, 12);
  EXPECT_EQ(turned.pixels, oriented(image, 6).pixels);
  for (const std::string& plain :
       {jpeg_bytes(image), png_bytes(image), webp_bytes(image), bmp_bytes(image), pnm_bytes(image)})
    EXPECT_EQ(orientation_of(plain), 1);
  for (const int wrong : {0, 9, 65535}) EXPECT_EQ(orientation_of(png_with(tiff(wrong), png_bytes(image))), 1);
}

TEST(Exif, DamageMeansAsItLies) {
  const Image image = test_image(8, 8, 3);
  for (const std::string& whole : {jpeg_with(tiff(6), jpeg_bytes(image)), png_with(tiff(6, false), png_bytes(image)),
                                   webp_with(tiff(6), webp_bytes(image), image)}) {
    for (size_t n = 0; n <= whole.size(); ++n) orientation_of(whole.substr(0, n));
    for (size_t i = 0; i < whole.size(); ++i)
      for (const char value : {'\0', '\x7f', '\xff'}) {
        std::string damaged = whole;
        damaged[i] = value;
        const int o = orientation_of(damaged);
        EXPECT_TRUE(o >= 1 && o <= 8);
      }
  }
  EXPECT_EQ(orientation_of(jpeg_with(tiff(6).substr(0, 12), jpeg_bytes(image))), 1);
}

}  // namespace
}  // namespace octet::data
