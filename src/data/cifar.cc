#include "data/cifar.h"

#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/memory_dataset.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

constexpr int kSide = 32, kChannels = 3;
constexpr size_t kImageBytes = kSide * kSide * kChannels;

struct Variant {
  int classes;
  size_t label_bytes;  // of which the last is the class
  std::vector<std::string> train, test;
  const char* names_file;
};

Variant variant_of(const std::string& format) {
  if (format == "cifar10") {
    Variant v{10, 1, {}, {"test_batch.bin"}, "batches.meta.txt"};
    for (int i = 1; i <= 5; ++i) v.train.push_back(str("data_batch_", i, ".bin"));
    return v;
  }
  return {100, 2, {"train.bin"}, {"test.bin"}, "fine_label_names.txt"};
}

// One name a line; numbers where the file is missing or does not have exactly the classes.
std::vector<std::string> read_names(const fs::path& file, int classes) {
  std::vector<std::string> names;
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) {
    std::istringstream lines(read_file(file));
    for (std::string line; std::getline(lines, line);) {
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty()) names.push_back(line);
    }
  }
  if (std::cmp_equal(names.size(), classes)) return names;
  names.clear();
  for (int i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

std::unique_ptr<Dataset> open_cifar(const DatasetOptions& options) {
  const Variant variant = variant_of(options.format);
  std::vector<fs::path> files{options.path};
  fs::path directory = options.path.parent_path();
  if (fs::is_directory(options.path)) {
    if (options.split.empty())
      fail_usage(options.path.string(), ": is a directory of CIFAR files; say which split (train or test)");
    directory = options.path;
    files.clear();
    for (const std::string& name : options.split == "train" ? variant.train : variant.test)
      files.push_back(directory / name);
  }
  MemoryDataset::Contents contents{
      .height = kSide, .width = kSide, .channels = kChannels, .layout = PixelLayout::kPlanar};
  const size_t stride = variant.label_bytes + kImageBytes;
  for (const fs::path& file : files) {
    std::string bytes = read_file(file);
    require(!bytes.empty() && bytes.size() % stride == 0, file.string(), ": has ", bytes.size(),
            " bytes, expected a multiple of ", stride, " (", options.format,
            " records); the file is damaged or not of ", "this format");
    const int64_t count = static_cast<int64_t>(bytes.size() / stride);
    for (int64_t i = 0; i < count; ++i) {
      const int label = static_cast<uint8_t>(bytes[i * stride + variant.label_bytes - 1]);
      require(label < variant.classes, file.string(), ": record ", i, " has label ", label, ", expected less than ",
              variant.classes);
      contents.labels.push_back(label);
    }
    contents.parts.push_back({file.string(), std::move(bytes), variant.label_bytes, stride, count});
  }
  contents.class_names = read_names(directory / variant.names_file, variant.classes);
  return std::make_unique<MemoryDataset>(std::move(contents), options.channels);
}

}  // namespace octet::data
