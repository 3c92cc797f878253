#include "data/subset.h"

#include "base/error.h"

namespace octet::data {
namespace {

class Subset : public Dataset {
 public:
  Subset(std::unique_ptr<Dataset> whole, int64_t offset, int64_t count)
      : whole_(std::move(whole)), offset_(offset), count_(count) {
    class_names_ = whole_->class_names();
  }
  int64_t size() const override { return count_; }
  Sample get(int64_t index) const override { return whole_->get(offset_ + index); }
  Annotation truth(int64_t index) const override { return whole_->truth(offset_ + index); }
  std::string name(int64_t index) const override { return whole_->name(offset_ + index); }
  uint64_t content_hash() const override {
    return whole_->content_hash() ^ (static_cast<uint64_t>(offset_) << 32) ^ static_cast<uint64_t>(count_);
  }

 private:
  std::unique_ptr<Dataset> whole_;
  int64_t offset_, count_;
};

}  // namespace

std::unique_ptr<Dataset> take_subset(std::unique_ptr<Dataset> dataset, int64_t offset, int64_t count) {
  const int64_t size = dataset->size();
  if (offset == 0 && count == 0) return dataset;
  if (offset < 0 || count < 0 || offset >= size || count > size - offset)
    fail_usage("images ", offset, " to ", offset + count, " were asked for, the dataset has ", size);
  return std::make_unique<Subset>(std::move(dataset), offset, count == 0 ? size - offset : count);
}

}  // namespace octet::data
