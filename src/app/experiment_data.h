// From the `data` section of a spec to datasets and loaders.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "spec/experiment.h"

namespace octet::app {

// A dataset with the loader that reads it.
struct DataStream {
  std::unique_ptr<data::Dataset> dataset;
  std::unique_ptr<data::Loader> loader;
  std::shared_ptr<data::MemoryBudget> cache;  // of its decoded images (data.cache_mb); null: they are not kept
};

// Of the spec's training images, in the order of their labels; empty where it names none.
std::vector<std::string> training_class_names(const spec::ExperimentSpec& spec);

// Shuffled, augmented, whole batches: what training reads. `model_classes`: the names of the
// model's classes in order, by which the images are labeled; empty: the images name and number them. UserError (exit 2)
// when the spec names no training images, or they have a class that the model does not have.
DataStream open_training_data(const spec::ExperimentSpec& spec, const train::TrainOptions& schedule,
                              const std::vector<std::string>& model_classes = {}, data::Share share = {});
// Validation images in their order, labeled by the classes of `training`, or nothing when the spec names none. Both
// keep decoded images within one budget, and have the same share.
DataStream open_validation_data(const spec::ExperimentSpec& spec, const DataStream& training);
// Test images (else validation images) in their order, labeled by the classes of the model, where it names them, else
// by those of the spec's training images. `batch_size` 0: that of the spec.
DataStream open_evaluation_data(const spec::ExperimentSpec& spec, int64_t batch_size = 0,
                                const std::vector<std::string>& model_classes = {});
// The first `quant.calibration.images` images of the calibration source in a shuffled but fixed order, changed as
// `quant.calibration.transforms` says. `at_a_time` > 0: in whole batches of that, else of the spec's size.
DataStream open_calibration_data(const spec::ExperimentSpec& spec, int64_t at_a_time, data::Share share = {});

// The options of a calibration's loader, from those of an evaluation's. A network that takes a number of images at a
// time gets whole batches; images that do not fill one are left out, as they would be seen twice.
data::LoaderOptions calibration_loader_options(const spec::ExperimentSpec& spec, data::LoaderOptions options,
                                               int64_t at_a_time);
// UserError where the images do not fill a batch; else says how many are left out.
void check_calibration_batches(const data::Loader& loader);

// How images are read for evaluation: in order, the transform without random choices. `batch_size` 0: that of the spec.
data::LoaderOptions evaluation_loader_options(const spec::ExperimentSpec& spec, int64_t batch_size = 0);

}  // namespace octet::app
