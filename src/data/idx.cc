#include "data/idx.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/input_file.h"
#include "data/gzip.h"
#include "data/memory_dataset.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

std::string shape_text(const std::vector<int64_t>& sizes) {
  std::string out;
  for (int64_t size : sizes) out += (out.empty() ? "" : " x ") + std::to_string(size);
  return out;
}

// `stem` as the archives spell it ("train-images-idx3-ubyte", once "train-images.idx3-ubyte"), plain or .gz.
fs::path find_idx(const fs::path& directory, const std::string& kind, const std::string& rank) {
  for (const char* separator : {"-", "."})
    for (const char* suffix : {"", ".gz"}) {
      const fs::path path = directory / (kind + separator + rank + "-ubyte" + suffix);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path;
    }
  fail(directory.string(), ": has no file ", kind, "-", rank,
       "-ubyte (or .gz); is it a directory of MNIST-like files?");
}

IdxArray read_idx(ByteSource source, const std::string& name, size_t max_size) {
  GzipReader reader(std::move(source), name);
  const std::string magic = reader.read(4);
  const auto byte = [](const std::string& bytes, size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i]));
  };
  require(magic.size() == 4 && byte(magic, 0) == 0 && byte(magic, 1) == 0, name,
          ": is not an IDX file (it must begin with two zero bytes)");
  const uint32_t type = byte(magic, 2);
  require(type == 0x08, name, ": IDX type 0x", "0123456789abcdef"[type >> 4], "0123456789abcdef"[type & 15],
          " is not supported, expected 0x08 (unsigned bytes)");
  const size_t rank = byte(magic, 3);
  require(rank >= 1 && rank <= 4, name, ": has ", rank, " dimensions, expected 1 to 4");
  const std::string sizes = reader.read(4 * rank);
  require(sizes.size() == 4 * rank, name, ": ends within its header");
  IdxArray array;
  uint64_t total = 1;
  for (size_t at = 0; at < sizes.size(); at += 4) {
    const uint64_t size =
        byte(sizes, at) << 24 | byte(sizes, at + 1) << 16 | byte(sizes, at + 2) << 8 | byte(sizes, at + 3);
    array.sizes.push_back(static_cast<int64_t>(size));
    // Beyond the limit anyway; stopping here keeps it from overflowing.
    total = size != 0 && total > (uint64_t{1} << 62) / size ? uint64_t{1} << 62 : total * size;
  }
  require(total <= max_size, name, ": its header says ", shape_text(array.sizes), ", more than the limit of ", max_size,
          " bytes; the file is damaged, or must be divided");
  array.values = reader.read(total + 1);  // one more, to see whether more follow
  require(array.values.size() == total, name, ": its header says ", shape_text(array.sizes), " = ", total,
          " bytes, but ", array.values.size() > total ? "more" : std::to_string(array.values.size()),
          " follow; the file is damaged or incomplete");
  return array;
}

IdxArray read_idx_file(const fs::path& path) {
  const InputFile file(path);
  file.require_regular();
  return read_idx([&](std::span<char> out) { return file.read(out); }, path.string(), kMaxIdxBytes);
}

}  // namespace

IdxArray parse_idx(std::string_view bytes, const std::string& name, size_t max_size) {
  return read_idx(
      [rest = bytes](std::span<char> out) mutable {
        const size_t n = rest.copy(out.data(), out.size());
        rest.remove_prefix(n);
        return n;
      },
      name, max_size);
}

std::unique_ptr<Dataset> make_idx_dataset(IdxArray images, std::string images_name, std::optional<IdxArray> labels,
                                          const std::string& labels_name, const DatasetOptions& options) {
  require(images.sizes.size() == 3, images_name, ": has shape ", shape_text(images.sizes),
          ", expected images x height x width (is it the labels file?)");
  const int64_t count = images.sizes[0], height = images.sizes[1], width = images.sizes[2];
  require(count > 0 && height > 0 && width > 0, images_name, ": holds no images (shape ", shape_text(images.sizes),
          ")");
  MemoryDataset::Contents contents;
  contents.height = static_cast<int>(height);
  contents.width = static_cast<int>(width);
  contents.channels = 1;
  contents.parts.push_back(
      {std::move(images_name), std::move(images.values), 0, static_cast<size_t>(height * width), count});
  if (labels) {
    require(labels->sizes.size() == 1, labels_name, ": has shape ", shape_text(labels->sizes),
            ", expected one label per image (is it the images file?)");
    require(labels->sizes[0] == count, labels_name, ": holds ", labels->sizes[0], " labels, but ",
            contents.parts[0].file, " holds ", count, " images");
    for (char value : labels->values) contents.labels.push_back(static_cast<uint8_t>(value));
    const int classes = 1 + *std::max_element(contents.labels.begin(), contents.labels.end());
    for (int i = 0; i < classes; ++i) contents.class_names.push_back(std::to_string(i));
  }
  return std::make_unique<MemoryDataset>(std::move(contents), options.channels);
}

std::unique_ptr<Dataset> open_idx(const DatasetOptions& options) {
  fs::path images = options.path, labels = options.labels;
  if (fs::is_directory(options.path)) {
    if (options.split.empty())
      fail_usage(options.path.string(), ": is a directory of IDX files; say which split (train or test)");
    const std::string prefix = options.split == "train" ? "train" : "t10k";
    images = find_idx(options.path, prefix + "-images", "idx3");
    if (labels.empty()) labels = find_idx(options.path, prefix + "-labels", "idx1");
  }
  IdxArray image_array = read_idx_file(images);
  std::optional<IdxArray> label_array;
  if (!labels.empty()) label_array = read_idx_file(labels);
  return make_idx_dataset(std::move(image_array), images.string(), std::move(label_array), labels.string(), options);
}

}  // namespace octet::data
