#include "data/image_records.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/records.h"
#include "data/class_order.h"
#include "data/counter_rng.h"
#include "data/features.h"
#include "data/image_header.h"
#include "data/image_write.h"
#include "data/imagenet_tfrecord.h"
#include "data/record_shards.h"
#include "schema/schema.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLargestShard = size_t{1} << 32;  // bytes

struct ImageFile {
  std::string bytes;
  const char* format = "PNG";  // image/format
};

// TensorFlow reads JPEG and PNG.
ImageFile image_file(const Dataset& dataset, int64_t index) {
  if (std::optional<std::string> bytes = dataset.encoded(index)) {
    const ImageFormat format = read_image_header(std::as_bytes(std::span(*bytes))).format;
    if (format == ImageFormat::kJpeg || format == ImageFormat::kPng)
      return {std::move(*bytes), format == ImageFormat::kJpeg ? "JPEG" : "PNG"};
  }
  return {.bytes = encode_png(dataset.get(index).image)};
}

// A synset and its text a line, with a blank or a tab between them.
std::map<std::string, std::string> read_texts(const fs::path& file) {
  std::map<std::string, std::string> out;
  if (file.empty()) return out;
  std::istringstream lines(read_file(file));
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const size_t gap = line.find_first_of(" \t");
    require(gap != 0 && gap != std::string::npos && gap + 1 < line.size(), file.string(), ":", number,
            ": is no line of a synset and its text, as n01440764 tench, Tinca tinca");
    out[line.substr(0, gap)] = line.substr(gap + 1);
  }
  return out;
}

class RecordMaker {
 public:
  RecordMaker(const Dataset& dataset, const ImageRecordOptions& options)
      : dataset_(dataset),
        offset_(options.label_offset),
        named_(!are_numbers(dataset.class_names())),
        texts_(read_texts(options.text_of_synset)) {
    for (const std::string& name : dataset.class_names())
      if (!texts_.empty() && !texts_.contains(name))
        fail(options.text_of_synset.string(), ": has no line for the class '", name, "'");
  }

  // Throws CorruptSample and DecodeError.
  std::string record(int64_t index, int label) const {
    const ImageFile file = image_file(dataset_, index);
    const ImageSize size = image_size(std::as_bytes(std::span(file.bytes)));
    FeatureWriter features;
    features.add_integers("image/height", {size.height});
    features.add_integers("image/width", {size.width});
    features.add_text("image/format", file.format);
    features.add_text("image/filename", fs::path(dataset_.name(index)).filename().string());
    features.add_integers(kLabelFeature, {label + offset_});
    if (named_) {
      const std::string& name = dataset_.class_names().at(static_cast<size_t>(label));
      features.add_text(kSynsetFeature, name);
      features.add_text(kTextFeature, texts_.empty() ? name : texts_.at(name));
    }
    features.add_text(kEncodedFeature, file.bytes);
    return framed_record(features.example());
  }

 private:
  const Dataset& dataset_;
  int64_t offset_;
  bool named_;  // else classes are numbers, which the label says
  std::map<std::string, std::string> texts_;
};

void require_classes(const Dataset& dataset, const DatasetOptions& source) {
  if (dataset.labeled() && dataset.size() > 0 && dataset.truth(0).label >= 0) return;
  fail_usage(source.path.string(), dataset.labeled()
                                       ? ": tells the objects in its images; octet convert dataset writes those"
                                       : ": its images have no class");
}

}  // namespace

void describe(schema::Section& s, ImageRecordOptions& options) {
  s.section("source", options.source).help("The data set: format, path and so on, as an entry of data.train.");
  s.field("num_shards", options.num_shards)
      .range(0, 99'999)
      .known_elsewhere_as({"shards", "train_shards", "validation_shards"})
      .help("Files; 0: one for every 1,250 images.");
  s.field("label_offset", options.label_offset)
      .range(0, 1e6)
      .help("image/class/label of the first class. 1: as TF-slim, with 0 for the background; 0: as Keras.");
  s.field("shuffle", options.shuffle)
      .help("Images in random order, so that files are alike; else in that of the source.");
  s.field("seed", options.seed).range(0, 9e15).help("Of the random order.");
  s.field("text_of_synset", options.text_of_synset)
      .input_path()
      .help(
          "File with a line for each class, its name and what image/class/text is to say: n01440764 tench, Tinca "
          "tinca. "
          "Empty: the name.");
}

WrittenRecords write_image_records(const Dataset& dataset, const ImageRecordOptions& options, const fs::path& name,
                                   const std::function<void(int64_t)>& progress) {
  require_classes(dataset, options.source);
  const RecordMaker maker(dataset, options);
  std::vector<int64_t> order(static_cast<size_t>(dataset.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  CounterRng random(static_cast<uint64_t>(options.seed), 0);
  if (options.shuffle) shuffle(order, random);
  const int64_t images = dataset.size();
  const int64_t wanted = options.num_shards > 0 ? options.num_shards : (images + kImagesOfShard - 1) / kImagesOfShard;
  ShardName shard{.set = name.filename().string(), .shards = std::min(wanted, images)};
  WrittenRecords out;
  out.of_class.resize(dataset.class_names().size());
  try {
    for (; shard.shard < shard.shards; ++shard.shard) {
      std::string bytes;
      for (int64_t i = images * shard.shard / shard.shards; i < images * (shard.shard + 1) / shard.shards; ++i) {
        const int64_t index = order[static_cast<size_t>(i)];
        const int label = dataset.truth(index).label;
        try {
          bytes += maker.record(index, label);
          ++out.images;
          ++out.of_class.at(static_cast<size_t>(label));
        } catch (const CorruptSample& error) {
          out.findings.add(Finding::kUnreadableImage, error.what());
        } catch (const DecodeError& error) {
          out.findings.add(Finding::kUnreadableImage, str(dataset.name(index), ": ", error.what()));
        }
        if (bytes.size() > kLargestShard)
          fail_usage(name.string(), ": a shard would have more than 4 GiB; write more than ", shard.shards, " shards");
      }
      const fs::path file = name.parent_path() / shard_file_name(shard);
      write_file_atomically(file, bytes);
      out.files.push_back(file);
      if (progress) progress(images * (shard.shard + 1) / shard.shards);
    }
    require(out.images > 0, options.source.path.string(), ": holds no image that can be used",
            out.findings.as_reasons());
  } catch (...) {
    std::error_code ignored;
    for (const fs::path& file : out.files) fs::remove(file, ignored);
    throw;
  }
  return out;
}

std::vector<fs::path> earlier_shards(const fs::path& name) {
  const fs::path folder = name.has_parent_path() ? name.parent_path() : fs::path(".");
  std::vector<fs::path> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::optional<ShardName> shard = shard_name(entry.path().filename().string());
    if (shard && shard->set == name.filename().string() && shard->ending.empty()) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace octet::data
