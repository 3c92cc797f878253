#include "data/image_folder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/file_dataset.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

bool hidden(const fs::path& path) {
  return path.filename().string().starts_with(".");
}

struct LabeledFile {
  fs::path path;
  int label;
  uint64_t bytes;
};

// Image files of `directory` itself, or of everything below it.
template <typename Iterator>
std::vector<LabeledFile> images_in(const fs::path& directory, int label) {
  std::vector<LabeledFile> out;
  for (Iterator it(directory, fs::directory_options::follow_directory_symlink), end; it != end; ++it)
    if (!hidden(it->path()) && has_image_ending(it->path()) && it->is_regular_file())
      out.push_back({it->path(), label, it->file_size()});
  std::sort(out.begin(), out.end(),
            [](const LabeledFile& a, const LabeledFile& b) { return a.path.native() < b.path.native(); });
  return out;
}

std::vector<fs::path> class_directories(const fs::path& root) {
  std::vector<fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(root))
    if (entry.is_directory() && !hidden(entry.path())) out.push_back(entry.path());
  std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return out;
}

fs::path root_of(const DatasetOptions& options) {
  const fs::path root = options.split.empty() ? options.path : options.path / options.split;
  require(fs::is_directory(root), root.string(),
          ": is not a directory; image_folder needs one with a sub-directory per ", "class");
  return root;
}

}  // namespace

std::vector<std::string> image_folder_class_names(const DatasetOptions& options) {
  const fs::path root = root_of(options);
  try {
    std::vector<std::string> names;
    for (const fs::path& directory : class_directories(root)) names.push_back(directory.filename().string());
    return names;
  } catch (const fs::filesystem_error& error) {
    fail(error.path1().string(), ": cannot be read: ", error.code().message());
  }
}

std::unique_ptr<Dataset> open_image_folder(const DatasetOptions& options) {
  const fs::path root = root_of(options);
  try {
    const std::vector<fs::path> directories = class_directories(root);
    std::vector<LabeledFile> entries = images_in<fs::directory_iterator>(root, -1);
    require(entries.empty() || directories.empty(), root.string(), ": has images both directly in it (",
            entries.empty() ? "" : entries[0].path.filename().string(), ") and class directories (",
            directories.empty() ? "" : directories[0].filename().string(), "); move one of them away");
    std::vector<std::string> names;
    for (const fs::path& directory : directories) {
      std::vector<LabeledFile> found =
          images_in<fs::recursive_directory_iterator>(directory, static_cast<int>(names.size()));
      require(!found.empty(), directory.string(),
              ": class directory without images (JPEG, PNG, BMP, WebP, PPM or PGM)");
      std::move(found.begin(), found.end(), std::back_inserter(entries));
      names.push_back(directory.filename().string());
    }
    require(!entries.empty(), root.string(),
            ": has neither class directories nor images (JPEG, PNG, BMP, WebP, PPM or ", "PGM)");
    const DecodeOptions decode{.channels = options.channels == 1 ? 1 : 3,
                               .min_decode_side = options.min_decode_side,
                               .exif_orientation = options.exif_orientation};
    uint64_t hash = 0;
    std::vector<FileDataset::Entry> files;
    for (const LabeledFile& entry : entries) {
      hash = hash64(str(entry.path.lexically_relative(root).string(), '\n', entry.bytes), hash);
      files.push_back({.path = entry.path, .truth = {.label = entry.label, .objects = {}}});
    }
    return std::make_unique<FileDataset>(std::move(files), std::move(names), hash, decode);
  } catch (const fs::filesystem_error& error) {
    fail(error.path1().string(), ": cannot be read: ", error.code().message());
  }
}

}  // namespace octet::data
