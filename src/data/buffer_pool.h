// Float buffers that go back to where they came from: a training run needs a handful, not one allocation a batch.
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace octet::data {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // Owns its memory; gives it back to the pool (which it keeps alive) when it goes. Contents start undefined.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept = default;
    Buffer& operator=(Buffer&& other) noexcept {
      release();
      values_ = std::move(other.values_);
      pool_ = std::move(other.pool_);
      size_ = std::exchange(other.size_, 0);
      return *this;
    }
    ~Buffer() { release(); }
    const float* data() const { return values_.data(); }
    float* data() { return values_.data(); }
    size_t size() const { return size_; }
    // At most the size it was taken with.
    void shrink(size_t size) { size_ = size < size_ ? size : size_; }

   private:
    friend class BufferPool;
    Buffer(std::vector<float> values, size_t size, std::shared_ptr<BufferPool> pool)
        : values_(std::move(values)), size_(size), pool_(std::move(pool)) {}
    void release() {
      if (pool_) pool_->give_back(std::move(values_));
      pool_.reset();
    }
    std::vector<float> values_;
    size_t size_ = 0;
    std::shared_ptr<BufferPool> pool_;
  };

  Buffer take(size_t size) {
    std::vector<float> values;
    {
      const std::scoped_lock lock(mutex_);
      if (!free_.empty()) {
        values = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (values.size() < size) values.resize(size);
    return Buffer(std::move(values), size, shared_from_this());
  }

 private:
  void give_back(std::vector<float> values) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(values));
  }
  std::mutex mutex_;
  std::vector<std::vector<float>> free_;
};

}  // namespace octet::data
