#include "data/image_write.h"

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "base/error.h"
#include "base/files.h"

namespace octet::data {

std::string encode_png(const Image& image) {
  OCTET_CHECK(image.channels == 1 || image.channels == 3, image.channels);
  cv::Mat rows(image.height, image.width, image.channels == 1 ? CV_8UC1 : CV_8UC3,
               const_cast<uint8_t*>(image.pixels.data()));
  cv::Mat stored = rows;
  if (image.channels == 3) cv::cvtColor(rows, stored, cv::COLOR_RGB2BGR);  // OpenCV keeps B, G, R
  std::vector<uint8_t> bytes;
  OCTET_CHECK(cv::imencode(".png", stored, bytes));
  return {bytes.begin(), bytes.end()};
}

void write_png(const std::filesystem::path& path, const Image& image) {
  write_file_atomically(path, encode_png(image));
}

}  // namespace octet::data
