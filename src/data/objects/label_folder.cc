#include "data/objects/label_folder.h"

#include <map>

#include "base/error.h"
#include "base/files.h"
#include "data/image_file.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

std::map<std::string, fs::path> images_by_name(const fs::path& folder) {
  std::map<std::string, fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path.filename().string().starts_with(".") || !has_image_ending(path) || !entry.is_regular_file()) continue;
    const auto [other, is_new] = out.emplace(path.stem().string(), path);
    require(is_new, path.string(), ": there is ", other->second.filename().string(), ", too; which one is annotated?");
  }
  require(!out.empty(), folder.string(), ": has no images (", kImageFormats, ")");
  return out;
}

}  // namespace

fs::path folder_in(const fs::path& root, const std::vector<const char*>& names) {
  for (const char* name : names)
    if (fs::is_directory(root / name)) return root / name;
  std::string list;
  for (const char* name : names) list += str(list.empty() ? "" : " or ", "'", name, "'");
  fail(root.string(), ": has no directory ", list);
}

AnnotatedSet read_label_folder(const LabelFolder& folder) {
  const std::map<std::string, fs::path> images = images_by_name(folder.images);
  std::vector<std::string> names = folder.chosen;
  if (names.empty())
    for (const auto& [name, path] : images) names.push_back(name);
  AnnotatedSet set;
  for (const std::string& name : names) {
    const auto image = images.find(name);
    if (image == images.end()) {
      set.findings.add(Finding::kNoImage, (folder.images / name).string());
      continue;
    }
    const fs::path labels = folder.labels / (name + folder.ending);
    std::error_code error;
    if (!fs::exists(labels, error)) {
      set.findings.add(Finding::kNoAnnotation, image->second.string());
      continue;
    }
    try {
      const std::string text = read_file(labels);
      set.images.push_back({.path = image->second,
                            .name = (image->second.parent_path().lexically_relative(folder.root) / name).string(),
                            .source = labels.string(),
                            .annotation = folder.parse(text)});
      set.hash = hash64(str(name, '\n', fs::file_size(image->second), '\n', text), set.hash);
    } catch (const DecodeError& damage) {
      set.findings.add(Finding::kUnreadableAnnotation, str(labels.string(), ": ", damage.what()));
    } catch (const UserError& unreadable) {
      set.findings.add(Finding::kUnreadableAnnotation, unreadable.what());
    }
  }
  return set;
}

}  // namespace octet::data
