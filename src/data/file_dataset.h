// Image files with what is known of each: what folders of images become.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/dataset.h"
#include "data/image_file.h"

namespace octet::data {

class FileDataset : public Dataset {
 public:
  struct Entry {
    std::filesystem::path path;
    Annotation truth;
  };
  // `hash`: content_hash(). Files are opened only when they are read.
  FileDataset(std::vector<Entry> entries, std::vector<std::string> class_names, uint64_t hash,
              const DecodeOptions& decode, Findings findings = {})
      : entries_(std::move(entries)), decode_(decode), content_hash_(hash) {
    class_names_ = std::move(class_names);
    findings_ = std::move(findings);
  }
  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  Sample get(int64_t index) const override { return {read_image_file(entry(index).path, decode_), truth(index)}; }
  Annotation truth(int64_t index) const override { return entry(index).truth; }
  std::string name(int64_t index) const override { return entry(index).path.string(); }
  std::optional<std::string> encoded(int64_t index) const override { return read_image_bytes(entry(index).path); }
  uint64_t content_hash() const override { return content_hash_; }

 private:
  const Entry& entry(int64_t index) const {
    OCTET_CHECK(index >= 0 && index < size(), "image ", index, " of ", size());
    return entries_[static_cast<size_t>(index)];
  }

  std::vector<Entry> entries_;
  DecodeOptions decode_;
  uint64_t content_hash_;
};

}  // namespace octet::data
