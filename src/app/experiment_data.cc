#include "app/experiment_data.h"

#include <algorithm>
#include <utility>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/log.h"
#include "data/class_order.h"
#include "data/contents.h"
#include "data/image_cache.h"
#include "data/joined.h"

namespace octet::app {
namespace {

// What a network's scores are called: by the model, else by the training images.
struct Classes {
  std::vector<std::string> names;  // empty: by the images themselves
  std::string whose;
};

// What images are read for, and where from.
struct Role {
  std::string name;  // as in the spec: "data.train"
  data::Sources sources;
  bool sampled = false;  // as data.sampling_mode and weights say, else every image once
};

// Says what there is, and what of it cannot be used, before any work starts; stops it where nothing is left.
void report_contents(const Role& role, const data::Dataset& dataset) {
  for (const std::string& sentence : dataset.findings().sentences()) log_warning(role.name, ": ", sentence);
  const data::Contents contents = data::contents_of(dataset);
  const auto in_images = static_cast<int64_t>(
      std::count_if(contents.of_class.begin(), contents.of_class.end(), [](int64_t count) { return count > 0; }));
  if (dataset.labeled() && in_images == 0)
    fail(role.name, " (", data::paths_of(role.sources), "): none of its ", contents.images,
         " images has an object of any class", dataset.findings().as_reasons());
  if (contents.objects == 0) return;
  log_info(role.name, ": ", data::contents_text(contents, dataset.class_names()));
  for (size_t i = 0; i < contents.of_class.size(); ++i)
    if (contents.of_class[i] == 0)
      log_warning(role.name, ": there is no object of the class '", dataset.class_names()[i], "'");
}

DataStream open(const spec::ExperimentSpec& spec, const Role& role, data::LoaderOptions options,
                const Classes& wanted = {}, std::shared_ptr<data::MemoryBudget> cache = nullptr) {
  const int64_t channels = spec.model.channels();
  if (channels != 1 && channels != 3)
    fail_usage("model.input of the spec has ", channels, " channels; images have 1 or 3");
  std::vector<data::Source> opened;
  std::vector<data::Portion> portions;
  for (data::DatasetOptions source : role.sources) {
    source.exif_orientation = spec.data.exif_orientation;
    source.channels = static_cast<int>(channels);
    source.min_decode_side = data::decode_hint(options.transform);
    source.cache = cache;
    const std::string where = source.path.string();
    std::unique_ptr<data::Dataset> dataset = data::map_classes(data::open_dataset(source), spec.data.classes, where);
    portions.push_back({.images = dataset->size(), .weight = source.weight});
    opened.push_back({data::label_by_names(std::move(dataset), wanted.names, where, wanted.whose), where});
  }
  if (role.sampled) options.portions = data::sampled(std::move(portions), spec.data.sampling);
  options.threads = static_cast<int>(spec.data.threads > 0 ? spec.data.threads : available_cpus());
  options.seed = static_cast<uint64_t>(spec.data.seed);
  options.clip = data::clip_rule(spec.data);
  DataStream stream{.cache = std::move(cache)};
  stream.dataset = data::join(std::move(opened));
  report_contents(role, *stream.dataset);
  const auto classes = static_cast<int64_t>(stream.dataset->class_names().size());
  if (stream.dataset->labeled() && classes > spec.model.num_classes)
    fail_usage(data::paths_of(role.sources), ": ", role.sources.size() > 1 ? "hold " : "holds ", classes,
               " classes, the spec says model.num_classes: ", spec.model.num_classes,
               stream.dataset->findings().as_reasons());
  stream.loader = std::make_unique<data::Loader>(*stream.dataset, options);
  return stream;
}

std::string validation_name(const spec::ExperimentSpec& spec) {
  return spec.data.validation_fold < 0 ? "data.val" : str("fold ", spec.data.validation_fold, " of data.train");
}

// Only images that name the classes themselves have an order of their own to mend, so nothing is read where none is
// involved.
Classes classes_for(const spec::ExperimentSpec& spec, const data::Sources& sources,
                    const std::vector<std::string>& model_classes) {
  if (!model_classes.empty()) return {model_classes, "of the model"};
  const auto named = [](const data::Sources& images) {
    return std::any_of(images.begin(), images.end(), [](const data::DatasetOptions& source) {
      return data::dataset_format(source.format).class_names != nullptr;
    });
  };
  if (!named(sources) && !named(spec.data.train) && sources.size() < 2 && spec.data.train.size() < 2) return {};
  return {data::training_class_names(spec.data), "of the training images"};
}

}  // namespace

std::vector<std::string> training_class_names(const spec::ExperimentSpec& spec) {
  return data::training_class_names(spec.data);
}

data::LoaderOptions evaluation_loader_options(const spec::ExperimentSpec& spec, int64_t batch_size) {
  data::LoaderOptions options{.batch_size = batch_size > 0 ? batch_size : spec.evaluate.batch_size,
                              .replace_corrupt = false};
  options.transform =
      data::evaluation_transform(data::training_transform(spec.data, spec.model.height(), spec.model.width()));
  return options;
}

DataStream open_training_data(const spec::ExperimentSpec& spec, const train::TrainOptions& schedule,
                              const std::vector<std::string>& model_classes, data::Share share) {
  if (spec.data.train.empty()) fail_usage("the spec names no training images; add data.train");
  data::LoaderOptions options{
      .batch_size = schedule.batch_size_per_gpu, .shuffle = true, .drop_last = true, .share = share};
  options.share.even = true;
  options.transform = data::training_transform(spec.data, spec.model.height(), spec.model.width());
  return open(spec, {.name = "data.train", .sources = spec.data.training_sources(), .sampled = true}, options,
              {model_classes, "of the model"}, data::decoded_image_budget(spec.data.cache_mb));
}

DataStream open_validation_data(const spec::ExperimentSpec& spec, const DataStream& training) {
  const data::Sources sources = spec.data.validation_sources();
  if (sources.empty()) return {};
  data::LoaderOptions options = evaluation_loader_options(spec);
  options.share = training.loader->options().share;
  options.share.even = false;
  return open(spec, {.name = validation_name(spec), .sources = sources}, options,
              {training.dataset->class_names(), "of the training images"}, training.cache);
}

DataStream open_evaluation_data(const spec::ExperimentSpec& spec, int64_t batch_size,
                                const std::vector<std::string>& model_classes) {
  const data::Sources sources = spec.data.evaluation_sources();
  if (sources.empty()) fail_usage("the spec names no images to evaluate; add data.test or data.val");
  return open(spec, {.name = spec.data.test.empty() ? validation_name(spec) : "data.test", .sources = sources},
              evaluation_loader_options(spec, batch_size), classes_for(spec, sources, model_classes));
}

data::LoaderOptions calibration_loader_options(const spec::ExperimentSpec& spec, data::LoaderOptions options,
                                               int64_t at_a_time) {
  options.shuffle = true;
  options.max_images = spec.quant.calibration.images;
  options.batch_size = at_a_time > 0 ? at_a_time : spec.quant.calibration.batch_size;
  options.drop_last = at_a_time > 1;
  if (spec.quant.calibration.transforms == quant::CalibrationTransforms::kTraining)
    options.transform = data::training_transform(spec.data, options.transform.height, options.transform.width);
  return options;
}

void check_calibration_batches(const data::Loader& loader) {
  const data::LoaderOptions& options = loader.options();
  if (!options.drop_last) return;
  const int64_t images =
      options.max_images > 0 ? std::min(options.max_images, loader.dataset().size()) : loader.dataset().size();
  const int64_t left = images % options.batch_size;
  if (left == images)
    fail("the network takes ", options.batch_size, " images at a time, and there are ", images,
         " to calibrate with; give more images or export the network with a smaller batch");
  if (left > 0)
    log_info("the network takes ", options.batch_size, " images at a time: ", left, " of the ", images,
             " are left out");
}

DataStream open_calibration_data(const spec::ExperimentSpec& spec, int64_t at_a_time, data::Share share) {
  const data::Sources sources = spec.data.calibration_sources();
  if (sources.empty()) fail_usage("the spec names no images to calibrate with; add data.calibration or data.train");
  data::LoaderOptions options = calibration_loader_options(spec, evaluation_loader_options(spec), at_a_time);
  options.share = share;
  DataStream stream = open(
      spec, {.name = spec.data.calibration.empty() ? "data.train" : "data.calibration", .sources = sources}, options);
  check_calibration_batches(*stream.loader);
  return stream;
}

}  // namespace octet::app
