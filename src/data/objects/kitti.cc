#include "data/objects/kitti.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "data/objects/label_folder.h"
#include "data/objects/numbers.h"

namespace octet::data {
namespace {

constexpr const char* kFields[] = {"class",  "truncation", "occlusion", "angle", "x0", "y0", "x1",        "y1",
                                   "height", "width",      "length",    "x",     "y",  "z",  "rotation_y"};

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::string_view rest = trimmed(line); !rest.empty(); rest = trimmed(rest)) {
    const size_t length = std::min(rest.find_first_of(" \t"), rest.size());
    out.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return out;
}

AnnotatedObject parse_line(const std::vector<std::string_view>& fields, int64_t line) {
  if (fields.size() != std::size(kFields) && fields.size() != std::size(kFields) + 1)
    throw DecodeError(str("line ", line, ": has ", fields.size(), " fields, KITTI's labels have 15"));
  float numbers[std::size(kFields)] = {};
  for (size_t i = 1; i < std::size(kFields); ++i) {
    const std::optional<float> value = parse_float(fields[i]);
    if (!value)
      throw DecodeError(
          str("line ", line, ": ", kFields[i], " (field ", i + 1, ") is '", fields[i], "', expected a number"));
    numbers[i] = *value;
  }
  AnnotatedObject object{.class_name = std::string(fields[0]),
                         .box = {numbers[4], numbers[5], numbers[6], numbers[7]},
                         .difficult = numbers[2] != 0,
                         .place = line};
  object.kitti.truncation = numbers[1];
  if (std::abs(numbers[2]) < 100) object.kitti.occlusion = static_cast<int>(numbers[2]);
  object.kitti.angle = numbers[3];
  std::copy(numbers + 8, std::end(numbers), object.kitti.world.begin());
  return object;
}

}  // namespace

AnnotationFile parse_kitti(std::string_view text) {
  AnnotationFile file;
  for (int64_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (const auto fields = words(text.substr(0, end)); !fields.empty())
      file.objects.push_back(parse_line(fields, line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return file;
}

AnnotatedSet read_kitti(const DatasetOptions& options) {
  const std::filesystem::path root = options.split.empty() ? options.path : options.path / options.split;
  const bool apart = !options.labels.empty();
  AnnotatedSet set = read_label_folder({.root = options.path,
                                        .images = apart ? root : folder_in(root, {"image_2", "images"}),
                                        .labels = apart ? options.labels : folder_in(root, {"label_2", "labels"}),
                                        .ending = ".txt",
                                        .parse = parse_kitti,
                                        .chosen = {}});
  set.dont_care = true;
  return set;
}

}  // namespace octet::data
