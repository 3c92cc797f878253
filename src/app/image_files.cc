#include "app/image_files.h"

#include <algorithm>
#include <filesystem>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/files.h"
#include "base/output_guard.h"
#include "data/file_dataset.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> expand(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::exists(path)) fail_usage(path, ": there is no such file or folder");
    if (!fs::is_directory(path)) {
      require_file(path, "image");
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file() && data::has_image_ending(entry.path())) found.push_back(entry.path().string());
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  for (const std::string& file : files) require_no_output(file);
  if (files.empty()) fail("there is no image in ", paths[0], "; JPEG, PNG, BMP, WebP, PPM and PGM files are taken");
  return files;
}

}  // namespace

DataStream open_image_files(const spec::ExperimentSpec& spec, const std::vector<std::string>& paths,
                            const std::vector<int64_t>& shape, int64_t batch_size) {
  const auto size = [&](size_t i) { return shape.at(i) > 0 ? shape[i] : spec.model.input.at(i); };
  DataStream stream;
  uint64_t hash = 0;
  std::vector<data::FileDataset::Entry> files;
  for (const std::string& file : expand(paths)) {
    hash = hash64(file, hash);
    files.push_back({.path = file, .truth = {}});
  }
  stream.dataset = std::make_unique<data::FileDataset>(
      std::move(files), std::vector<std::string>{}, hash,
      data::DecodeOptions{.channels = static_cast<int>(size(0)), .exif_orientation = spec.data.exif_orientation});
  data::LoaderOptions options = evaluation_loader_options(spec, batch_size);
  options.transform.height = static_cast<int>(size(1));
  options.transform.width = static_cast<int>(size(2));
  options.max_corrupt_fraction = 1.0;
  options.threads = available_cpus();
  stream.loader = std::make_unique<data::Loader>(*stream.dataset, options);
  return stream;
}

DataStream open_calibration_files(const spec::ExperimentSpec& spec, const std::vector<std::string>& paths,
                                  const std::vector<int64_t>& shape, int64_t at_a_time) {
  DataStream stream = open_image_files(spec, paths, shape, spec.quant.calibration.batch_size);
  stream.loader = std::make_unique<data::Loader>(*stream.dataset,
                                                 calibration_loader_options(spec, stream.loader->options(), at_a_time));
  check_calibration_batches(*stream.loader);
  return stream;
}

}  // namespace octet::app
