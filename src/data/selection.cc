#include "data/selection.h"

#include <numeric>

#include "base/error.h"
#include "base/files.h"

namespace octet::data {
namespace {

class Selection : public Dataset {
 public:
  Selection(std::unique_ptr<Dataset> whole, std::vector<int64_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {
    class_names_ = whole_->class_names();
    findings_ = whole_->findings();
    content_hash_ = hash64(std::as_bytes(std::span(indices_)), whole_->content_hash());
  }
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Sample get(int64_t index) const override { return whole_->get(in_whole(index)); }
  Annotation truth(int64_t index) const override { return whole_->truth(in_whole(index)); }
  std::string name(int64_t index) const override { return whole_->name(in_whole(index)); }
  std::optional<std::string> encoded(int64_t index) const override { return whole_->encoded(in_whole(index)); }
  uint64_t content_hash() const override { return content_hash_; }

 private:
  int64_t in_whole(int64_t index) const {
    OCTET_CHECK(index >= 0 && index < size(), "image ", index, " of ", size());
    return indices_[static_cast<size_t>(index)];
  }

  std::unique_ptr<Dataset> whole_;
  std::vector<int64_t> indices_;
  uint64_t content_hash_;
};

}  // namespace

std::unique_ptr<Dataset> select(std::unique_ptr<Dataset> dataset, std::vector<int64_t> indices) {
  return std::make_unique<Selection>(std::move(dataset), std::move(indices));
}

std::unique_ptr<Dataset> take_subset(std::unique_ptr<Dataset> dataset, int64_t offset, int64_t count) {
  const int64_t size = dataset->size();
  if (offset == 0 && count == 0) return dataset;
  if (offset < 0 || count < 0 || offset >= size || count > size - offset)
    fail_usage("images ", offset, " to ", offset + count, " were asked for, the dataset has ", size);
  std::vector<int64_t> indices(static_cast<size_t>(count == 0 ? size - offset : count));
  std::iota(indices.begin(), indices.end(), offset);
  return select(std::move(dataset), std::move(indices));
}

}  // namespace octet::data
