#include "engine/file_constants.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octet::engine {
namespace {

using Range = std::pair<size_t, size_t>;  // begin and end, in bytes of the file

// What every instruction set copies or reorders when it prepares the plan.
void add_moved(const Plan& plan, size_t offset, size_t size, std::vector<Range>& moved) {
  for (const Step& step : plan.steps) {
    const auto weights = step.constants.find("weights");
    if (step.kind != "conv" || weights == step.constants.end()) continue;
    const ConstantRef& ref = weights->second;
    if (ref.offset < 0 || ref.bytes < kMovedWeightBytes || static_cast<uint64_t>(ref.offset) > size ||
        static_cast<uint64_t>(ref.bytes) > size - static_cast<uint64_t>(ref.offset))
      continue;
    const size_t begin = offset + static_cast<size_t>(ref.offset);
    moved.emplace_back(begin, begin + static_cast<size_t>(ref.bytes));
  }
}

class FileConstants : public ConstantBlob {
 public:
  FileConstants(std::unique_ptr<InputFile> file, std::unique_ptr<MappedFile> whole, size_t offset, const Plan& plan,
                std::string name)
      : file_(std::move(file)), whole_(std::move(whole)), name_(std::move(name)) {
    const size_t size = whole_->bytes().size();
    bytes_ = whole_->bytes().subspan(offset);
    std::vector<Range> moved;
    add_moved(plan, offset, size - offset, moved);
    for (const Plan& profile : plan.profiles) add_moved(profile, offset, size - offset, moved);
    std::sort(moved.begin(), moved.end());
    for (const Range& range : moved) {
      // Whole pages only: what shares a page with its neighbors is copied with them.
      const Range pages{MappedFile::round_up(range.first), MappedFile::round_down(range.second)};
      const size_t begin = std::max(pages.first, mapped_.empty() ? 0 : mapped_.back().second);
      if (begin < pages.second) mapped_.emplace_back(begin, pages.second);
    }
    whole_->release(whole_->bytes().first(offset));
    size_t at = MappedFile::round_down(offset);
    for (const Range& range : mapped_) {
      if (at < range.first) whole_->copy_pages(at, range.first);
      at = range.second;
    }
    // With what kernels may load beyond the last constant.
    whole_->copy_pages(at, MappedFile::round_up(size) + MappedFile::round_up(1));
    check_unchanged();
  }

  std::span<const std::byte> bytes() const override { return bytes_; }

  void release(std::span<const std::byte> part) const override {
    const size_t begin = static_cast<size_t>(part.data() - whole_->bytes().data()), end = begin + part.size();
    for (const Range& range : mapped_) {
      const size_t from = std::max(begin, range.first), to = std::min(end, range.second);
      if (from < to) whole_->release(whole_->bytes().subspan(from, to - from));
    }
  }

  void check_unchanged() const override {
    require(
        mapped_.empty() || file_->unchanged(), name_,
        ": was changed while it was in use; load it again, and replace engine files by renaming a new one over them");
  }

 private:
  std::unique_ptr<InputFile> file_;
  std::unique_ptr<MappedFile> whole_;
  std::string name_;
  std::span<const std::byte> bytes_;
  std::vector<Range> mapped_;  // in ascending order, apart
};

}  // namespace

std::shared_ptr<const ConstantBlob> make_file_constants(std::unique_ptr<InputFile> file,
                                                        std::unique_ptr<MappedFile> whole, size_t offset,
                                                        const Plan& plan, const std::string& name) {
  return std::make_shared<FileConstants>(std::move(file), std::move(whole), offset, plan, name);
}

}  // namespace octet::engine
