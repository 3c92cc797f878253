#include "data/image_cache.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octet::data {
namespace {

class KeepingDataset : public Dataset {
 public:
  KeepingDataset(std::unique_ptr<Dataset> dataset, std::shared_ptr<MemoryBudget> budget)
      : dataset_(std::move(dataset)), budget_(std::move(budget)), kept_(static_cast<size_t>(dataset_->size())) {
    class_names_ = dataset_->class_names();
    findings_ = dataset_->findings();
  }
  ~KeepingDataset() override {
    for (const std::atomic<const Image*>& slot : kept_)
      if (const Image* image = slot.load(std::memory_order_relaxed)) {
        budget_->give_back(bytes_of(*image));
        delete image;
      }
  }
  int64_t size() const override { return dataset_->size(); }
  Annotation truth(int64_t index) const override { return dataset_->truth(index); }
  std::string name(int64_t index) const override { return dataset_->name(index); }
  uint64_t content_hash() const override { return dataset_->content_hash(); }

  Sample get(int64_t index) const override {
    OCTET_CHECK(index >= 0 && index < size(), "image ", index, " of ", size());
    std::atomic<const Image*>& slot = kept_[static_cast<size_t>(index)];
    if (const Image* image = slot.load(std::memory_order_acquire)) return {*image, dataset_->truth(index)};
    Sample sample = dataset_->get(index);
    keep(sample.image, slot);
    return sample;
  }

 private:
  static int64_t bytes_of(const Image& image) { return static_cast<int64_t>(sizeof(Image) + image.pixels.capacity()); }

  // Two threads may have decoded the same image: the first one's stays.
  void keep(const Image& image, std::atomic<const Image*>& slot) const {
    const auto bytes = static_cast<int64_t>(sizeof(Image) + image.pixels.size());  // a copy has no room to spare
    if (!budget_->take(bytes)) return;
    auto copy = std::make_unique<const Image>(image);
    OCTET_CHECK(bytes_of(*copy) == bytes);
    const Image* none = nullptr;
    if (slot.compare_exchange_strong(none, copy.get(), std::memory_order_acq_rel))
      copy.release();
    else
      budget_->give_back(bytes);
  }

  const std::unique_ptr<Dataset> dataset_;
  const std::shared_ptr<MemoryBudget> budget_;
  mutable std::vector<std::atomic<const Image*>> kept_;  // of each image; null: not in memory
};

// What the kernel could hand out without swapping; unlimited where it does not say.
int64_t available_memory() {
  std::ifstream lines("/proc/meminfo");
  std::string name, unit;
  for (int64_t kilobytes = 0; lines >> name >> kilobytes; std::getline(lines, unit))
    if (name == "MemAvailable:") return kilobytes * 1024;
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

std::unique_ptr<Dataset> keep_decoded(std::unique_ptr<Dataset> dataset, std::shared_ptr<MemoryBudget> budget) {
  return std::make_unique<KeepingDataset>(std::move(dataset), std::move(budget));
}

std::shared_ptr<MemoryBudget> decoded_image_budget(int64_t megabytes) {
  if (megabytes == 0) return nullptr;
  return std::make_shared<MemoryBudget>(std::min(megabytes << 20, available_memory() / 2));
}

}  // namespace octet::data
