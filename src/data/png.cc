#include "data/png.h"

#include <png.h>
#include <zlib.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "base/error.h"

// libpng leaves a function at an error by longjmp, so those that call setjmp hold nothing that has a destructor: what
// is allocated lies in their callers.
namespace octet::data {
namespace {

constexpr size_t kErrorBytes = 160;

[[noreturn]] void keep_error(png_structp png, png_const_charp message) {
  std::strncpy(static_cast<char*>(png_get_error_ptr(png)), message, kErrorBytes - 1);
  png_longjmp(png, 1);
}
void ignore_warning(png_structp, png_const_charp) {}

struct Reader {
  explicit Reader(std::span<const std::byte> bytes) : rest(bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, error, keep_error, ignore_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) throw DecodeError("libpng could not be initialized");
    png_set_read_fn(png, this, [](png_structp from, png_bytep to, size_t size) {
      auto& reader = *static_cast<Reader*>(png_get_io_ptr(from));
      if (size > reader.rest.size()) png_error(from, "the file ends too soon");
      std::memcpy(to, reader.rest.data(), size);
      reader.rest = reader.rest.subspan(size);
    });
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::span<const std::byte> rest;
  char error[kErrorBytes] = "";
  png_structp png = nullptr;
  png_infop info = nullptr;
};

bool read_header(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_info(reader.png, reader.info);
  return true;
}

// Asks for 8 bits of `channels` in each pixel.
bool choose_output(Reader& reader, int channels) {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  const int color = png_get_color_type(png, reader.info), depth = png_get_bit_depth(png, reader.info);
  if (depth == 16) png_set_strip_16(png);
  png_set_strip_alpha(png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if ((color & PNG_COLOR_MASK_COLOR) == 0 && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (channels == 1)
    png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  else if ((color & PNG_COLOR_MASK_COLOR) == 0)
    png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  return true;
}

bool read_rows(Reader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

struct Writer {
  explicit Writer(std::string& bytes) {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, error, keep_error, ignore_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    OCTET_CHECK(info != nullptr, "libpng");
    png_set_write_fn(
        png, &bytes,
        [](png_structp to, png_bytep from, size_t size) {
          static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<const char*>(from), size);
        },
        [](png_structp) {});
  }
  ~Writer() { png_destroy_write_struct(&png, &info); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  char error[kErrorBytes] = "";
  png_structp png = nullptr;
  png_infop info = nullptr;
};

bool write_image(Writer& writer, const Image& image, png_bytepp rows) {
  png_structp png = writer.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  // Fast, and for what is drawn or smooth as small as the slower ways.
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
  png_set_compression_level(png, Z_BEST_SPEED);
  png_set_compression_strategy(png, Z_RLE);
  png_set_IHDR(png, writer.info, image.width, image.height, 8,
               image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, writer.info);
  png_write_image(png, rows);
  png_write_end(png, writer.info);
  return true;
}

std::vector<png_bytep> rows_of(Image& image) {
  std::vector<png_bytep> rows;
  for (int y = 0; y < image.height; ++y) rows.push_back(image.row(y));
  return rows;
}

}  // namespace

Image decode_png(std::span<const std::byte> bytes, int channels) {
  Reader reader(bytes);
  const auto give_up = [&] { throw DecodeError(str("its image data is damaged: ", reader.error)); };
  if (!read_header(reader) || !choose_output(reader, channels)) give_up();
  Image image{static_cast<int>(png_get_image_height(reader.png, reader.info)),
              static_cast<int>(png_get_image_width(reader.png, reader.info)),
              channels,
              {}};
  if (png_get_rowbytes(reader.png, reader.info) != static_cast<size_t>(image.width) * channels)
    throw DecodeError("its image data is damaged: its pixels are of no known kind");
  image.pixels.resize(image.size());
  std::vector<png_bytep> rows = rows_of(image);
  if (!read_rows(reader, rows.data())) give_up();
  return image;
}

std::string encode_png(const Image& image) {
  OCTET_CHECK(image.channels == 1 || image.channels == 3, image.channels);
  std::string bytes;
  Writer writer(bytes);
  std::vector<png_bytep> rows = rows_of(const_cast<Image&>(image));  // read only; libpng's function has no const form
  OCTET_CHECK(write_image(writer, image, rows.data()), writer.error);
  return bytes;
}

}  // namespace octet::data
