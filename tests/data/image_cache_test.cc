#include "data/image_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "data/joined.h"
#include "data/loader.h"
#include "image_files.h"

namespace octet::data {
namespace {

// Counts what is decoded. Image i is 10 x (10 + i), of bytes i.
class CountingDataset : public Dataset {
 public:
  CountingDataset(int64_t size, std::atomic<int>& decoded) : size_(size), decoded_(decoded) {
    class_names_ = {"a", "b"};
  }
  int64_t size() const override { return size_; }
  Sample get(int64_t index) const override {
    ++decoded_;
    if (index == 3 && size_ == 4) throw CorruptSample("three", "broken");
    const int width = 10 + static_cast<int>(index);
    return {{10, width, 1, std::vector<uint8_t>(static_cast<size_t>(10 * width), static_cast<uint8_t>(index))},
            truth(index)};
  }
  Annotation truth(int64_t index) const override { return {.label = static_cast<int>(index % 2)}; }
  std::string name(int64_t index) const override { return std::to_string(index); }
  uint64_t content_hash() const override { return 17; }

 private:
  int64_t size_;
  std::atomic<int>& decoded_;
};

int64_t bytes(int64_t index) {
  return static_cast<int64_t>(sizeof(Image)) + 10 * (10 + index);
}

TEST(ImageCache, KeepsTheFirstAsLongAsThereIsRoom) {
  std::atomic<int> decoded{0};
  const auto budget = std::make_shared<MemoryBudget>(bytes(5) + bytes(2) + bytes(9) - 1);
  {
    const auto kept = keep_decoded(std::make_unique<CountingDataset>(10, decoded), budget);
    EXPECT_EQ(kept->size(), 10);
    EXPECT_EQ(kept->content_hash(), 17u);
    EXPECT_EQ(kept->class_names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(kept->name(4), "4");
    for (int round = 0; round < 3; ++round)
      for (const int64_t index : {5, 2, 9}) {
        const Sample sample = kept->get(index);
        EXPECT_EQ(sample.image.width, 10 + index);
        EXPECT_EQ(sample.image.pixels,
                  std::vector<uint8_t>(static_cast<size_t>(10 * (10 + index)), static_cast<uint8_t>(index)));
        EXPECT_EQ(sample.truth.label, index % 2);
      }
    EXPECT_EQ(decoded, 3 + 2);  // 9 would be one byte too much
    EXPECT_EQ(budget->used(), bytes(5) + bytes(2));
    kept->get(0);  // a smaller one still goes in
    kept->get(0);
    EXPECT_EQ(decoded, 6);
    EXPECT_EQ(budget->used(), bytes(5) + bytes(2) + bytes(0));
  }
  EXPECT_EQ(budget->used(), 0);
}

TEST(ImageCache, ExactlyFullIsNotTooFull) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.take(60));
  EXPECT_FALSE(budget.take(41));
  EXPECT_TRUE(budget.take(40));
  EXPECT_FALSE(budget.take(1));
  budget.give_back(60);
  EXPECT_EQ(budget.used(), 40);
  EXPECT_EQ(decoded_image_budget(0), nullptr);
  EXPECT_EQ(decoded_image_budget(1)->bytes(), 1 << 20);
  EXPECT_LT(decoded_image_budget(int64_t{1} << 40)->bytes(), int64_t{1} << 50);  // there is not that much memory
}

TEST(ImageCache, DamagedImagesAreNotKept) {
  std::atomic<int> decoded{0};
  const auto kept =
      keep_decoded(std::make_unique<CountingDataset>(4, decoded), std::make_shared<MemoryBudget>(1 << 20));
  EXPECT_THROW(kept->get(3), CorruptSample);
  EXPECT_THROW(kept->get(3), CorruptSample);
  EXPECT_EQ(decoded, 2);
}

TEST(ImageCache, IsSharedByThreadsAndDatasets) {
  std::atomic<int> decoded{0};
  const auto budget = std::make_shared<MemoryBudget>(40 * bytes(20));
  const auto first = keep_decoded(std::make_unique<CountingDataset>(60, decoded), budget);
  const auto second = keep_decoded(std::make_unique<CountingDataset>(60, decoded), budget);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round)
        for (int64_t i = 0; i < 60; ++i) {
          const int64_t index = (i * (2 * t + 1) + round) % 60;
          const Sample sample = (round % 2 ? *first : *second).get(index);
          wrong += sample.image.width != 10 + index || sample.image.pixels.front() != index ||
                   sample.image.pixels.back() != index;
          wrong += budget->used() > budget->bytes();
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(budget->used(), 39 * bytes(0));
  EXPECT_LT(decoded, 4 * 20 * 60);
  decoded = 0;
  int64_t held = 0;
  for (const auto* dataset : {&first, &second})
    for (int64_t i = 0; i < 60; ++i) {
      const int before = decoded;
      (*dataset)->get(i);
      if (decoded == before) held += bytes(i);
    }
  EXPECT_EQ(budget->used(), held);  // what is found in memory is what is counted
}

class CachedFolder : public DirectoryTest {};

TEST_F(CachedFolder, GivesTheSameBatches) {
  for (int i = 0; i < 12; ++i) {
    const std::string side(static_cast<size_t>(8 * 8), static_cast<char>(i * 20));
    put(str(i % 2 ? "cat/" : "dog/", i, ".pgm"), "P5 8 8 255\n" + side);
  }
  const auto budget = std::make_shared<MemoryBudget>(5 * (static_cast<int64_t>(sizeof(Image)) + 64));
  const DatasetOptions plain{.format = "image_folder", .path = directory_, .channels = 1};
  DatasetOptions caching = plain;
  caching.cache = budget;
  const auto without = open_dataset(plain), with = open_dataset(caching);
  const LoaderOptions options{.batch_size = 4, .shuffle = true, .threads = 2};
  Loader a(*without, options), b(*with, options);
  for (int epoch = 0; epoch < 3; ++epoch) {
    a.start_epoch(epoch);
    b.start_epoch(epoch);
    while (auto expected = a.next()) {
      const auto batch = b.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(std::vector<float>(batch->images.data(), batch->images.data() + batch->images.size()),
                std::vector<float>(expected->images.data(), expected->images.data() + expected->images.size()));
      EXPECT_EQ(batch->labels(), expected->labels());
    }
  }
  EXPECT_EQ(budget->used(), budget->bytes());
}

}  // namespace
}  // namespace octet::data
