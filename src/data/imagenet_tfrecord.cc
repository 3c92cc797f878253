#include "data/imagenet_tfrecord.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/files.h"
#include "base/input_file.h"
#include "base/parallel.h"
#include "base/records.h"
#include "data/features.h"
#include "data/record_shards.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostClasses = 1'000'000;
constexpr size_t kLongestRecord = size_t{1} << 30;  // bytes

// What the records say of the class of a label.
struct ClassName {
  std::string synset, text;
  std::string where;  // the first record that has it
};

struct Record {
  uint64_t offset = 0;  // of the payload in its file
  uint32_t length = 0;  // of the payload
  uint32_t file = 0;
  uint32_t number = 0;  // in its file, from 1
  int label = 0;        // of the class, once all labels are known
};

// What opening reads of one file.
struct FileIndex {
  std::vector<Record> records;
  std::vector<int64_t> labels;  // as the file has them
  std::map<int64_t, ClassName> names;
  Findings findings;
  uint64_t bytes = 0;
  std::exception_ptr error;
};

std::string optional_text(const Features& features, const char* key) {
  const Feature* feature = find(features, key);
  return feature && feature->texts.size() == 1 ? std::string(feature->texts[0]) : std::string();
}

std::string place(const fs::path& file, int64_t record) {
  return str(file.string(), ", record ", record);
}

// `seen` may know the class already; then both must call it alike.
void add_name(std::map<int64_t, ClassName>& seen, int64_t label, const ClassName& name) {
  const auto [entry, added] = seen.try_emplace(label, name);
  ClassName& known = entry->second;
  if (added || name.synset == known.synset || name.synset.empty()) return;
  if (known.synset.empty())
    known = name;
  else
    fail(name.where, ": its class ", label, " has the synset '", name.synset, "', and that of ", known.where, " '",
         known.synset, "'; the records do not number their classes alike");
}

FileIndex read_index(const fs::path& path, uint32_t file) {
  FileIndex out;
  const MappedFile mapped(path);
  mapped.expect_sparse_reads();
  const std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  out.bytes = bytes.size();
  RecordReader records(bytes, path.string(), RecordCheck::kHeader);
  while (const auto payload = records.next()) {
    const std::string where = place(path, records.count());
    const auto offset = static_cast<size_t>(payload->data() - bytes.data());
    try {
      if (payload->size() > kLongestRecord) throw DecodeError(str("has ", payload->size(), " bytes, too many"));
      const Features features = read_features(*payload);
      only_text(features, kEncodedFeature);
      out.labels.push_back(only_integer(features, kLabelFeature));
      add_name(out.names, out.labels.back(),
               {optional_text(features, kSynsetFeature), optional_text(features, kTextFeature), where});
      out.records.push_back({.offset = offset,
                             .length = static_cast<uint32_t>(payload->size()),
                             .file = file,
                             .number = static_cast<uint32_t>(records.count())});
    } catch (const DecodeError& error) {
      if (!payload_holds(bytes.substr(offset, payload->size() + kRecordFooter)))
        fail(path.string(), ": record ", records.count(), " (byte ", records.place(), "): the checksum of its ",
             payload->size(), " bytes does not hold; the file is damaged");
      out.findings.add(Finding::kUnreadableAnnotation, str(where, ": ", error.what()));
    }
  }
  return out;
}

std::vector<FileIndex> read_indices(const std::vector<fs::path>& files) {
  std::vector<FileIndex> out(files.size());
  parallel_for(static_cast<int64_t>(files.size()), available_cpus(), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    try {
      out[at] = read_index(files[at], static_cast<uint32_t>(i));
    } catch (...) {
      out[at].error = std::current_exception();
    }
  });
  for (const FileIndex& index : out)
    if (index.error) std::rethrow_exception(index.error);
  return out;
}

class ImagenetTfrecord : public Dataset {
 public:
  ImagenetTfrecord(std::vector<fs::path> files, const DatasetOptions& options);

  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  Annotation truth(int64_t index) const override { return {.label = record(index).label, .objects = {}}; }
  std::string name(int64_t index) const override { return place(files_[record(index).file], record(index).number); }
  uint64_t content_hash() const override { return content_hash_; }

  Sample get(int64_t index) const override {
    const std::string image = *encoded(index);
    try {
      return {decode_image(std::as_bytes(std::span(image)), decode_), truth(index)};
    } catch (const DecodeError& error) {
      throw CorruptSample(name(index), error.what());
    }
  }
  std::optional<std::string> encoded(int64_t index) const override;

 private:
  const Record& record(int64_t index) const {
    OCTET_CHECK(index >= 0 && index < size(), "image ", index, " of ", size());
    return records_[static_cast<size_t>(index)];
  }
  void number_classes(const std::vector<int64_t>& labels, const DatasetOptions& options);
  void name_classes(const std::map<int64_t, ClassName>& names, int64_t offset);

  std::vector<fs::path> files_;
  std::vector<Record> records_;
  DecodeOptions decode_;
  uint64_t content_hash_ = 0;
};

ImagenetTfrecord::ImagenetTfrecord(std::vector<fs::path> files, const DatasetOptions& options)
    : files_(std::move(files)),
      decode_{.channels = options.channels == 1 ? 1 : 3,
              .min_decode_side = options.min_decode_side,
              .exif_orientation = options.exif_orientation} {
  std::vector<int64_t> labels;
  std::map<int64_t, ClassName> names;
  std::vector<FileIndex> indices = read_indices(files_);
  for (size_t i = 0; i < files_.size(); ++i) {
    const FileIndex& index = indices[i];
    records_.insert(records_.end(), index.records.begin(), index.records.end());
    labels.insert(labels.end(), index.labels.begin(), index.labels.end());
    for (const auto& [label, name] : index.names) add_name(names, label, name);
    findings_.add(index.findings);
    content_hash_ = hash64(str(files_[i].filename().string(), '\n', index.bytes), content_hash_);
  }
  require(!records_.empty(), options.path.string(), ": holds no image that can be used", findings_.as_reasons());
  number_classes(labels, options);
  name_classes(names, options.label_offset);
  content_hash_ = hash64(std::as_bytes(std::span(labels)), content_hash_ + static_cast<uint64_t>(options.label_offset));
}

void ImagenetTfrecord::number_classes(const std::vector<int64_t>& labels, const DatasetOptions& options) {
  const auto [lowest, highest] = std::minmax_element(labels.begin(), labels.end());
  const int64_t offset = options.label_offset, low = *lowest, high = *highest;
  const std::string said = str(kLabelFeature, " is ", low, " to ", high, " in ", labels.size(), " images");
  if (low < offset) {
    const auto below = std::count_if(labels.begin(), labels.end(), [&](int64_t label) { return label < offset; });
    fail(options.path.string(), ": ", below, " of ", labels.size(),
         " images have a label below label_offset, which is ", offset, " (", said, ")",
         low == 0  ? "; for records that count from 0, set label_offset: 0"
         : low > 0 ? str("; set label_offset: ", low)
                   : "; images without a class cannot be used");
  }
  require(high - offset < kMostClasses, options.path.string(), ": ", said, ", too many classes");
  for (size_t i = 0; i < records_.size(); ++i) records_[i].label = static_cast<int>(labels[i] - offset);
  class_names_.resize(static_cast<size_t>(high - offset + 1));
  if (low > offset)
    findings_.remark(str(said, ", so that the first ", low == offset + 1 ? "class has" : "classes have",
                         " no image with label_offset: ", offset, "; for records that count from ", low,
                         ", set label_offset: ", low));
}

void ImagenetTfrecord::name_classes(const std::map<int64_t, ClassName>& names, int64_t offset) {
  const auto all_have = [&](std::string ClassName::*text) {
    return std::all_of(names.begin(), names.end(), [&](const auto& entry) { return !(entry.second.*text).empty(); });
  };
  const bool synsets = all_have(&ClassName::synset), named = synsets || all_have(&ClassName::text);
  const size_t unnamed = class_names_.size() - names.size();
  for (size_t i = 0; i < class_names_.size(); ++i) class_names_[i] = std::to_string(i);
  if (!named) return;
  std::map<std::string, const ClassName*> known;
  for (const auto& [label, name] : names) {
    const std::string& text = synsets ? name.synset : name.text;
    const auto [other, added] = known.emplace(text, &name);
    if (added) continue;
    if (synsets)
      fail(name.where, ": has the class ", label, " with the synset '", text, "', which is that of another class in ",
           other->second->where, "; the records do not number their classes alike");
    findings_.remark(
        str("two classes are called '", text, "'; its classes are the numbers 0 to ", class_names_.size() - 1));
    return;
  }
  if (unnamed > 0) {
    findings_.remark(str(unnamed, " of its ", class_names_.size(),
                         " classes have no image here that would name them; its classes are the numbers 0 to ",
                         class_names_.size() - 1));
    return;
  }
  for (const auto& [label, name] : names)
    class_names_[static_cast<size_t>(label - offset)] = synsets ? name.synset : name.text;
}

std::optional<std::string> ImagenetTfrecord::encoded(int64_t index) const {
  const Record& r = record(index);
  std::string bytes(r.length + kRecordFooter, '\0');
  try {
    const InputFile file(files_[r.file]);
    file.require_regular();
    bytes.resize(file.read_at(r.offset, bytes));
  } catch (const UserError&) {
    throw CorruptSample(name(index), "its file cannot be read");
  }
  if (bytes.size() < r.length + kRecordFooter || !payload_holds(bytes))
    throw CorruptSample(name(index), str("the checksum of its ", r.length, " bytes from byte ", r.offset,
                                         " on does not hold; the file is damaged, or was changed"));
  try {
    return std::string(only_text(read_features(std::string_view(bytes).substr(0, r.length)), kEncodedFeature));
  } catch (const DecodeError& error) {
    throw CorruptSample(name(index), error.what());
  }
}

}  // namespace

std::unique_ptr<Dataset> open_imagenet_tfrecord(const DatasetOptions& options) {
  return std::make_unique<ImagenetTfrecord>(find_shards(options.path, options.split), options);
}

}  // namespace octet::data
