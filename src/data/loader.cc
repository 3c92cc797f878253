#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "data/counter_rng.h"

namespace octet::data {
namespace {

struct Epoch {
  int number = 0;
  std::vector<EpochOrder::Draw> order;
};

// A finished batch with what happened on the way; `error` is kept for its turn so that failures come in order.
struct Result {
  Batch batch;
  std::vector<std::pair<int64_t, CorruptReport::Entry>> corrupt;
  std::exception_ptr error;
};

void check_options(const LoaderOptions& options, const Dataset& dataset) {
  if (options.batch_size < 1) fail_usage("loader: batch size ", options.batch_size, ", expected at least 1");
  if (options.threads < 0 || options.threads > 1024)
    fail_usage("loader: ", options.threads, " threads, expected 0 to 1024");
  OCTET_CHECK(options.share.part >= 0 && options.share.part < options.share.parts, options.share.part);
  if (options.prefetch_batches < 0) fail_usage("loader: prefetch_batches ", options.prefetch_batches, " is negative");
  if (options.max_images < 0) fail_usage("loader: max_images ", options.max_images, " is negative");
  if (!(options.max_corrupt_fraction >= 0 && options.max_corrupt_fraction <= 1))
    fail_usage("loader: max_corrupt_fraction ", options.max_corrupt_fraction, ", expected 0 to 1");
  require(dataset.size() > 0, "the dataset has no images");
  int64_t portioned = options.portions.empty() ? dataset.size() : 0;
  for (const Portion& portion : options.portions) portioned += portion.images;
  OCTET_CHECK(portioned == dataset.size(), "portions of ", portioned, " images of ", dataset.size());
}

std::vector<Portion> portions_of(const LoaderOptions& options, const Dataset& dataset) {
  return options.portions.empty() ? std::vector<Portion>{{.images = dataset.size()}} : options.portions;
}

}  // namespace

std::vector<int64_t> Batch::labels() const {
  std::vector<int64_t> out;
  for (const Annotation& annotation : truth) out.push_back(annotation.label);
  return out;
}

class Loader::Impl {
 public:
  Impl(const Dataset& dataset, LoaderOptions options)
      : dataset_(dataset),
        options_((check_options(options, dataset), std::move(options))),
        transform_(options_.transform, first_image()),
        order_(portions_of(options_, dataset), options_.seed, options_.shuffle),
        images_(images_of_all_parts()),
        batches_(batches_of_a_part()),
        ahead_(options_.threads + options_.prefetch_batches),
        ready_(static_cast<size_t>(std::max<int64_t>(ahead_, 1))) {
    for (int i = 0; i < options_.threads; ++i) workers_.emplace_back([this] { work(); });
  }

  ~Impl() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    work_available_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void start_epoch(int number, int64_t first_batch) {
    OCTET_CHECK(first_batch >= 0 && first_batch <= batches_, "batch ", first_batch, " of ", batches_);
    auto epoch = std::make_shared<Epoch>();
    epoch->number = number;
    epoch->order = order_.draws(number);
    {
      const std::scoped_lock lock(mutex_);
      for (std::optional<Result>& slot : ready_) slot.reset();
      epoch_ = std::move(epoch);
      next_to_make_ = next_to_give_ = first_batch;
      end_ = batches_;
    }
    work_available_.notify_all();
  }

  std::optional<Batch> next() {
    OCTET_CHECK(epoch_ != nullptr, "start_epoch() comes first");
    while (next_to_give_ < end_) {
      Result result = options_.threads == 0 ? make(*epoch_, next_to_give_++) : take_ready();
      for (auto& [index, entry] : result.corrupt) note_corrupt(index, std::move(entry));
      if (report_.count() > allowed_corrupt()) {
        finish_epoch();
        fail_too_many();
      }
      if (result.error) {
        finish_epoch();
        std::rethrow_exception(result.error);
      }
      if (result.batch.size > 0) return std::move(result.batch);  // all images of it may have been left out
    }
    return std::nullopt;
  }

  const Dataset& dataset() const { return dataset_; }
  const LoaderOptions& options() const { return options_; }
  const Transform& transform() const { return transform_; }
  const CorruptReport& report() const { return report_; }
  int64_t images() const { return options_.share.even ? std::min(images_, batches_ * of_all_parts()) : images_; }
  int64_t batches() const { return batches_; }

 private:
  // Images in one batch of each part.
  int64_t of_all_parts() const { return options_.batch_size * options_.share.parts; }

  int64_t images_of_all_parts() const {
    const int64_t images = options_.max_images > 0 ? std::min(options_.max_images, order_.size()) : order_.size();
    return options_.drop_last ? images - images % options_.batch_size : images;
  }

  int64_t batches_of_a_part() const {
    return options_.share.even ? images_ / of_all_parts() : (images_ + of_all_parts() - 1) / of_all_parts();
  }

  // Whole images only: of 150 images at 1 % one may be corrupt.
  int64_t allowed_corrupt() const {
    return static_cast<int64_t>(options_.max_corrupt_fraction * static_cast<double>(dataset_.size()));
  }

  [[noreturn]] void fail_too_many() const {
    const auto& [index, first] = *report_.entries.begin();
    fail("at least ", report_.count(), " of ", dataset_.size(), " images are corrupt, more than the ",
         options_.max_corrupt_fraction * 100, " % that are left out; mend or remove them. The first is ", first.name,
         ": ", first.reason);
  }

  void note_corrupt(int64_t index, CorruptReport::Entry entry) {
    const auto [place, is_new] = report_.entries.try_emplace(index, std::move(entry));
    if (is_new)
      log_warning("corrupt image ", options_.replace_corrupt ? "replaced" : "left out", ": ", place->second.name, ": ",
                  place->second.reason);
  }

  Image first_image() {
    for (int64_t index = 0; index < dataset_.size(); ++index) {
      try {
        return dataset_.get(index).image;
      } catch (const CorruptSample& corrupt) {
        note_corrupt(index, {corrupt.name(), corrupt.reason()});
        if (report_.count() > allowed_corrupt()) fail_too_many();
      }
    }
    fail_too_many();
  }

  // Appends the image that goes where that of `draw` was wanted, all but the count; false when it is left out.
  bool load(const EpochOrder::Draw& draw, int epoch, float* out, Result& result) const {
    int64_t index = draw.image;
    for (int64_t tries = 0; tries <= allowed_corrupt(); ++tries, index = (index + 1) % dataset_.size()) {
      try {
        const Sample sample = dataset_.get(index);
        const AugmentKey key{options_.seed, epoch, index, draw.repetition};
        const Geometry geometry = transform_.choose(sample.image.height, sample.image.width, key);
        transform_.paint(sample.image, geometry, out, transform_.choose_color(key));
        result.batch.truth.push_back(moved(sample.truth, geometry, options_.clip));
        result.batch.geometry.push_back(geometry);
        result.batch.indices.push_back(index);
        return true;
      } catch (const CorruptSample& corrupt) {
        result.corrupt.push_back({index, {corrupt.name(), corrupt.reason()}});
        if (!options_.replace_corrupt) return false;
      } catch (const UserError& error) {
        throw UserError(str(dataset_.name(index), ": ", error.what()), error.code());
      }
    }
    return false;  // so many in a row that next() stops the run
  }

  Result make(const Epoch& epoch, int64_t number) const {
    Result result;
    Batch& batch = result.batch;
    const ImageShape& shape = transform_.output_shape();
    const int64_t begin = std::min(number * of_all_parts() + options_.share.part * options_.batch_size, images_);
    const int64_t end = std::min(begin + options_.batch_size, images_);
    batch.channels = shape.channels;
    batch.height = shape.height;
    batch.width = shape.width;
    try {
      batch.images = pool_->take(static_cast<size_t>((end - begin) * shape.size()));
      for (int64_t i = begin; i < end; ++i) {
        float* out = batch.images.data() + batch.size * shape.size();
        if (load(epoch.order[static_cast<size_t>(i)], epoch.number, out, result)) ++batch.size;
      }
      batch.images.shrink(static_cast<size_t>(batch.size * shape.size()));
    } catch (...) {
      result.error = std::current_exception();
    }
    return result;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_available_.wait(
          lock, [this] { return stop_ || (epoch_ && next_to_make_ < end_ && next_to_make_ < next_to_give_ + ahead_); });
      if (stop_) return;
      const std::shared_ptr<const Epoch> epoch = epoch_;
      const int64_t number = next_to_make_++;
      lock.unlock();
      Result result = make(*epoch, number);
      lock.lock();
      if (epoch != epoch_ || number >= end_) continue;  // that epoch was left meanwhile
      slot(number) = std::move(result);
      if (number == next_to_give_) batch_ready_.notify_one();
    }
  }

  Result take_ready() {
    std::unique_lock lock(mutex_);
    batch_ready_.wait(lock, [this] { return slot(next_to_give_).has_value(); });
    Result result = std::move(*slot(next_to_give_));
    slot(next_to_give_).reset();
    ++next_to_give_;
    lock.unlock();
    work_available_.notify_one();
    return result;
  }

  void finish_epoch() {
    const std::scoped_lock lock(mutex_);
    end_ = next_to_give_;
  }

  std::optional<Result>& slot(int64_t number) { return ready_[static_cast<size_t>(number) % ready_.size()]; }

  const Dataset& dataset_;
  const LoaderOptions options_;
  CorruptReport report_;  // of the calling thread; before transform_, whose initializer may add to it
  const Transform transform_;
  const EpochOrder order_;
  const int64_t images_, batches_, ahead_;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();

  std::mutex mutex_;  // guards what follows; the calling thread alone writes epoch_, next_to_give_ and end_
  std::condition_variable work_available_, batch_ready_;
  std::shared_ptr<const Epoch> epoch_;
  std::vector<std::optional<Result>> ready_;  // batch n waits in slot n % size
  int64_t next_to_make_ = 0, next_to_give_ = 0, end_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

Loader::Loader(const Dataset& dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(dataset, std::move(options))) {}
Loader::~Loader() = default;
void Loader::start_epoch(int epoch, int64_t first_batch) {
  impl_->start_epoch(epoch, first_batch);
}
std::optional<Batch> Loader::next() {
  return impl_->next();
}
int64_t Loader::batches_per_epoch() const {
  return impl_->batches();
}
int64_t Loader::images_per_epoch() const {
  return impl_->images();
}
const ImageShape& Loader::image_shape() const {
  return impl_->transform().output_shape();
}
const Dataset& Loader::dataset() const {
  return impl_->dataset();
}
const LoaderOptions& Loader::options() const {
  return impl_->options();
}
const CorruptReport& Loader::corrupt() const {
  return impl_->report();
}

}  // namespace octet::data
