// Batches of transformed images, prepared ahead by worker threads. The batches are a function of (dataset, options,
// epoch): the number of threads changes nothing but the time.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/buffer_pool.h"
#include "data/dataset.h"
#include "data/epoch_order.h"

namespace octet::data {

struct Batch {
  int64_t size = 0;  // images in it
  int channels = 0, height = 0, width = 0;
  BufferPool::Buffer images;       // size * channels * height * width floats, NCHW
  std::vector<Annotation> truth;   // of each image, in pixels of the network's input
  std::vector<Geometry> geometry;  // of each image
  std::vector<int64_t> indices;    // of the images in the dataset

  // Classes of the images; -1 where they have none.
  std::vector<int64_t> labels() const;
};

// One of several loaders that share an epoch's batches: they have them in turn.
struct Share {
  int64_t part = 0, parts = 1;
  bool even = false;  // batches that are left over, so that not all parts would have one more, are dropped
};

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;    // a new order each epoch, from seed and epoch
  uint64_t seed = 0;       // of order and augmentation
  int threads = 1;         // workers; 0: work in the thread that calls next()
  bool drop_last = false;  // leave out the last batch when it is not full
  int64_t max_images = 0;  // only that many of the epoch's order; 0: all
  // The batches part, part + parts, part + 2 * parts ... of those that the rest says, numbered anew: all parts have as
  // many, where it is not even the last one of some has no image, and next() gives nothing for it.
  Share share;
  // How often the images come in an epoch, for all images of the dataset in its order; empty: each once.
  std::vector<Portion> portions;
  TransformOptions transform;
  ClipRule clip;
  // A corrupt image is replaced by the next good one of the dataset, so that batches keep their size (training); or
  // left out, so that no image counts twice (evaluation: batches may be smaller).
  bool replace_corrupt = true;
  double max_corrupt_fraction = 0.01;  // of the dataset's images; beyond it next() throws
  int prefetch_batches = 2;            // ready in advance, besides one in work per thread
};

// The images that could not be decoded so far, each once, whatever the number of epochs.
struct CorruptReport {
  struct Entry {
    std::string name, reason;
  };
  std::map<int64_t, Entry> entries;  // by index in the dataset
  int64_t count() const { return static_cast<int64_t>(entries.size()); }
};

// Belongs to one thread; its workers are its own.
class Loader {
 public:
  // `dataset` must outlive the loader. Decodes the first image to learn the shape. UserError (exit 2) for options out
  // of range, (exit 1) when images do not fit the transform or too many are corrupt.
  Loader(const Dataset& dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Begins an epoch, also in the middle of another: `first_batch` > 0 resumes one where it was left.
  void start_epoch(int epoch, int64_t first_batch = 0);

  // The next batch of the epoch; nothing at its end. UserError when more than the allowed fraction of the images is
  // corrupt or an image does not fit the transform; the epoch is then over.
  std::optional<Batch> next();

  int64_t batches_per_epoch() const;
  int64_t images_per_epoch() const;  // of all parts
  const ImageShape& image_shape() const;
  const Dataset& dataset() const;
  const LoaderOptions& options() const;
  // Corrupt images in the batches handed out so far.
  const CorruptReport& corrupt() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace octet::data
