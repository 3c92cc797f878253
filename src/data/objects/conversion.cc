#include "data/objects/conversion.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/records.h"
#include "data/counter_rng.h"
#include "data/objects/example.h"
#include "data/objects/tfrecord.h"
#include "schema/schema.h"

namespace octet::data {
namespace fs = std::filesystem;

OCTET_ENUM_NAMES(PartitionMode, {PartitionMode::kRandom, "random"}, {PartitionMode::kSequence, "sequence"})

namespace {

using Partition = std::vector<size_t>;  // indices of images

std::vector<Partition> runs(const Partition& images, size_t parts) {
  std::vector<Partition> out(parts);
  for (size_t k = 0; k < parts; ++k)
    out[k].assign(images.begin() + static_cast<ptrdiff_t>(images.size() * k / parts),
                  images.begin() + static_cast<ptrdiff_t>(images.size() * (k + 1) / parts));
  return out;
}

std::vector<Partition> by_chance(Partition images, const ConversionOptions& options, CounterRng& random) {
  shuffle(images, random);
  if (options.num_partitions != 2) return runs(images, static_cast<size_t>(options.num_partitions));
  const auto split = static_cast<ptrdiff_t>(static_cast<double>(images.size()) * options.val_split / 100);
  return {Partition(images.begin(), images.begin() + split), Partition(images.begin() + split, images.end())};
}

struct Sequence {
  std::string name;
  Partition frames;
};

std::vector<Sequence> read_sequences(const fs::path& file, const std::vector<AnnotatedImage>& images) {
  const nlohmann::json json = nlohmann::json::parse(read_file(file), nullptr, false);
  if (!json.is_object()) fail(file.string(), ": is no JSON of the kind {\"sequence\": [\"frame\", ...], ...}");
  std::unordered_map<std::string, size_t> by_name;
  for (size_t i = 0; i < images.size(); ++i) {
    by_name.emplace(images[i].name, i);
    by_name.emplace(fs::path(images[i].name).filename().string(), i);
  }
  std::vector<Sequence> out;
  std::set<size_t> taken;
  for (const auto& [name, frames] : json.items()) {
    Sequence& sequence = out.emplace_back();
    sequence.name = name;
    if (!frames.is_array()) fail(file.string(), ": the sequence '", name, "' is no list of frames");
    for (const nlohmann::json& frame : frames) {
      const auto found = frame.is_string() ? by_name.find(frame.get<std::string>()) : by_name.end();
      if (found == by_name.end())
        fail(file.string(), ": the sequence '", name, "' has the frame ",
             frame.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), ", which is no annotated image");
      if (!taken.insert(found->second).second)
        fail(file.string(), ": the frame '", found->first, "' is there twice; it would train and validate");
      sequence.frames.push_back(found->second);
    }
  }
  return out;
}

std::vector<Partition> by_sequence(const std::vector<AnnotatedImage>& images, const ConversionOptions& options) {
  const auto parts = static_cast<size_t>(options.num_partitions);
  if (options.kitti_sequence_to_frames_file.empty()) {
    Partition all(images.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return runs(all, parts);
  }
  std::vector<Sequence> sequences = read_sequences(options.kitti_sequence_to_frames_file, images);
  std::sort(sequences.begin(), sequences.end(), [](const Sequence& a, const Sequence& b) {
    return a.frames.size() != b.frames.size() ? a.frames.size() > b.frames.size() : a.name < b.name;
  });
  std::vector<Partition> out(parts);
  for (size_t i = 0; i < sequences.size(); ++i) {
    Partition& part = out[parts - 1 - i % parts];
    part.insert(part.end(), sequences[i].frames.begin(), sequences[i].frames.end());
  }
  return out;
}

std::string records_of(const AnnotatedSet& set, std::span<const size_t> images, WrittenPartition& counts) {
  std::string bytes;
  for (const size_t i : images) {
    const AnnotatedImage& image = set.images[i];
    bytes += framed_record(write_example({.id = image.name, .annotation = image.annotation}));
    ++counts.images;
    for (const AnnotatedObject& object : image.annotation.objects) ++counts.objects[object.class_name];
  }
  return bytes;
}

}  // namespace

void describe(schema::Section& s, ConversionOptions& options) {
  s.section("source", options.source).help("The data set: format, path and so on, as an entry of data.train.");
  s.field("partition_mode", options.partition_mode)
      .help(
          "random: images are dealt at random. sequence: images that follow one another stay together, so that a video "
          "does not validate what it trained.");
  s.field("num_partitions", options.num_partitions)
      .range(1, 999)
      .known_elsewhere_as({"folds", "num_folds"})
      .help("Parts; data.validation_fold of an experiment chooses the one that validates.");
  s.field("val_split", options.val_split)
      .range(0, 99.99)
      .unit("percent")
      .help("Two random partitions: images of the first, which validates.");
  s.field("num_shards", options.num_shards).range(0, 99'999).help("Files of each partition; 0: one.");
  s.field("kitti_sequence_to_frames_file", options.kitti_sequence_to_frames_file)
      .input_path()
      .help(
          "sequence: JSON file {\"sequence\": [\"frame\", ...]}. Sequences are dealt whole, the longest first; images "
          "in none are left out. Empty: each partition is a run of images in their order.");
  s.field("seed", options.seed).range(0, 9e15).help("Of the random order.");
  s.rule("kitti_sequence_to_frames_file", [&options] {
    return !options.kitti_sequence_to_frames_file.empty() && options.partition_mode != PartitionMode::kSequence
               ? "belongs to partition_mode: sequence"
               : "";
  });
}

std::vector<std::vector<size_t>> partition(const std::vector<AnnotatedImage>& images,
                                           const ConversionOptions& options) {
  CounterRng random(static_cast<uint64_t>(options.seed), 0);
  Partition all(images.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<Partition> out = options.partition_mode == PartitionMode::kRandom
                                   ? by_chance(std::move(all), options, random)
                                   : by_sequence(images, options);
  for (Partition& part : out) shuffle(part, random);
  return out;
}

std::vector<WrittenPartition> write_tfrecords(const AnnotatedSet& set, const ConversionOptions& options,
                                              const fs::path& name, const std::function<void(int64_t)>& progress) {
  const std::vector<Partition> partitions = partition(set.images, options);
  const auto folds = static_cast<int64_t>(partitions.size());
  std::vector<WrittenPartition> out;
  int64_t images = 0;
  try {
    for (int64_t fold = 0; fold < folds; ++fold) {
      const Partition& part = partitions[static_cast<size_t>(fold)];
      WrittenPartition& counts = out.emplace_back();
      if (part.empty()) continue;
      const auto shards = std::min(options.num_shards, static_cast<int64_t>(part.size()));
      const std::vector<Partition> pieces = runs(part, static_cast<size_t>(std::max<int64_t>(shards, 1)));
      for (size_t shard = 0; shard < pieces.size(); ++shard) {
        const fs::path file =
            name.parent_path() / record_file_name(name.filename().string(), fold, folds > 1 ? folds : 0,
                                                  static_cast<int64_t>(shard), shards);
        write_file_atomically(file, records_of(set, pieces[shard], counts));
        counts.files.push_back(file);
        if (progress) progress(images += static_cast<int64_t>(pieces[shard].size()));
      }
    }
  } catch (...) {
    std::error_code ignored;
    for (const WrittenPartition& part : out)
      for (const fs::path& file : part.files) fs::remove(file, ignored);
    throw;
  }
  return out;
}

std::vector<fs::path> earlier_records(const fs::path& name) {
  const fs::path folder = name.has_parent_path() ? name.parent_path() : fs::path(".");
  const std::string stem = name.filename().string();
  std::vector<fs::path> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (file == stem || file.starts_with(stem + "-fold-") || file.starts_with(stem + "-shard-"))
      out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

AnnotatedSet read_objects(const DatasetOptions& source) {
  const DatasetFormat& format = dataset_format(source.format);
  if (!format.read_objects) {
    std::vector<std::string> names;
    for (const DatasetFormat& other : dataset_formats())
      if (other.read_objects) names.push_back(other.name);
    fail_usage("the format ", source.format, " has no objects in images to convert; ", schema::alternatives(names),
               " have; octet convert images writes the records of classifiers");
  }
  require(fs::exists(source.path), source.path.string(), ": no such file or directory");
  return format.read_objects(source);
}

}  // namespace octet::data
