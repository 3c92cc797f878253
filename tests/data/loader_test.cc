#include "data/loader.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/log.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// `count` images of 6 x 6 pixels; those in `corrupt` cannot be decoded.
class FakeDataset : public Dataset {
 public:
  explicit FakeDataset(int64_t count, std::vector<int64_t> corrupt = {}) : count_(count), corrupt_(std::move(corrupt)) {
    class_names_ = {"a", "b", "c"};
  }
  int64_t size() const override { return count_; }
  Sample get(int64_t index) const override {
    ++reads;
    if (std::ranges::count(corrupt_, index)) throw CorruptSample(name(index), "broken");
    const int side = index == odd_size ? 5 : 6;
    return {test_image(side, side, 1, static_cast<int>(index)), truth(index)};
  }
  Annotation truth(int64_t index) const override { return {.label = static_cast<int>(index % 3), .objects = {}}; }
  std::string name(int64_t index) const override { return str("image", index); }
  uint64_t content_hash() const override { return 1; }
  mutable std::atomic<int64_t> reads = 0;
  int64_t odd_size = -1;

 private:
  int64_t count_;
  std::vector<int64_t> corrupt_;
};

struct Copy {
  std::vector<float> images;
  std::vector<int64_t> labels, indices;
  bool operator==(const Copy&) const = default;
};

std::vector<Copy> drain(Loader& loader) {
  std::vector<Copy> out;
  while (const auto batch = loader.next()) {
    EXPECT_EQ(batch->images.size(), static_cast<size_t>(batch->size * batch->channels * batch->height * batch->width));
    EXPECT_EQ(batch->size, static_cast<int64_t>(batch->truth.size()));
    out.push_back(
        {{batch->images.data(), batch->images.data() + batch->images.size()}, batch->labels(), batch->indices});
  }
  return out;
}

std::vector<int64_t> all_indices(const std::vector<Copy>& batches) {
  std::vector<int64_t> out;
  for (const Copy& batch : batches) out.insert(out.end(), batch.indices.begin(), batch.indices.end());
  return out;
}

std::vector<Copy> epoch_of(const Dataset& dataset, const LoaderOptions& options, int epoch, int64_t first = 0) {
  Loader loader(dataset, options);
  loader.start_epoch(epoch, first);
  return drain(loader);
}

LoaderOptions training(int threads) {
  return {.batch_size = 8,
          .shuffle = true,
          .seed = 42,
          .threads = threads,
          .transform = {.crop_padding = 1, .flip = true, .mean = {0.5f}, .std = {0.25f}}};
}

class LoaderTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }  // corrupt images are the point here
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

TEST_F(LoaderTest, BatchesDoNotDependOnThreads) {
  const FakeDataset dataset(203, {17, 18});
  LoaderOptions options = training(0);
  options.max_corrupt_fraction = 0.01;
  for (int epoch : {0, 7}) {
    const std::vector<Copy> expected = epoch_of(dataset, options, epoch);
    ASSERT_EQ(expected.size(), 26u);
    for (int threads : {1, 2, 5}) {
      options.threads = threads;
      for (int prefetch : {0, 3}) {
        options.prefetch_batches = prefetch;
        EXPECT_EQ(epoch_of(dataset, options, epoch), expected) << threads << " threads";
      }
    }
    options.threads = 0;
  }
}

TEST_F(LoaderTest, AnEpochHasEveryImageOnceAndEpochsDiffer) {
  const FakeDataset dataset(100);
  Loader loader(dataset, training(2));
  std::vector<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    orders.push_back(all_indices(drain(loader)));
    std::vector<int64_t> sorted = orders.back(), all(100);
    std::ranges::sort(sorted);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
  }
  EXPECT_NE(orders[0], orders[1]);
  loader.start_epoch(1);
  EXPECT_EQ(all_indices(drain(loader)), orders[1]);
}

TEST_F(LoaderTest, ColorsChangePixelsAndNothingElse) {
  const FakeDataset dataset(24);
  LoaderOptions options = training(0);
  const std::vector<Copy> plain = epoch_of(dataset, options, 1);
  options.transform.color = ColorOptions{.brightness = 0.5};
  const std::vector<Copy> colored = epoch_of(dataset, options, 1);
  ASSERT_EQ(colored.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(colored[i].labels, plain[i].labels);
    EXPECT_EQ(colored[i].indices, plain[i].indices);
    EXPECT_NE(colored[i].images, plain[i].images);
  }
  options.threads = 3;
  EXPECT_EQ(epoch_of(dataset, options, 1), colored);
}

TEST_F(LoaderTest, PortionsComeAsOftenAsTheyWeighAndChangeEachTime) {
  const FakeDataset dataset(12);
  LoaderOptions options = training(0);
  options.portions = {{.images = 4, .weight = 3}, {.images = 8, .weight = 0.5}};
  Loader loader(dataset, options);
  EXPECT_EQ(loader.images_per_epoch(), 16);
  loader.start_epoch(2);
  const std::vector<Copy> batches = drain(loader);
  const std::vector<int64_t> indices = all_indices(batches);
  ASSERT_EQ(indices.size(), 16u);
  std::vector<std::vector<float>> first_image;  // each time that it came
  for (const Copy& batch : batches)
    for (size_t i = 0; i < batch.indices.size(); ++i)
      if (batch.indices[i] == 0)
        first_image.emplace_back(batch.images.begin() + static_cast<ptrdiff_t>(i) * 36,
                                 batch.images.begin() + static_cast<ptrdiff_t>(i + 1) * 36);
  ASSERT_EQ(first_image.size(), 3u);
  EXPECT_FALSE(first_image[0] == first_image[1] && first_image[1] == first_image[2]);
  EXPECT_EQ(std::ranges::count_if(indices, [](int64_t index) { return index >= 4; }), 4);
  options.threads = 2;
  EXPECT_EQ(epoch_of(dataset, options, 2), batches);
}

TEST_F(LoaderTest, ResumesInTheMiddle) {
  const FakeDataset dataset(90);
  const std::vector<Copy> whole = epoch_of(dataset, training(2), 3);
  const std::vector<Copy> rest = epoch_of(dataset, training(2), 3, 5);
  EXPECT_EQ(rest, std::vector<Copy>(whole.begin() + 5, whole.end()));
  EXPECT_TRUE(epoch_of(dataset, training(2), 3, 12).empty());
}

TEST_F(LoaderTest, AnEpochMayBeLeftAtAnyTime) {
  const FakeDataset dataset(200);
  const std::vector<Copy> expected = epoch_of(dataset, training(0), 1);
  Loader loader(dataset, training(3));
  for (int round = 0; round < 30; ++round) {
    loader.start_epoch(0);
    for (int i = 0; i < round % 4; ++i) ASSERT_TRUE(loader.next());
  }
  loader.start_epoch(1);
  EXPECT_EQ(drain(loader), expected);
}

TEST_F(LoaderTest, LastBatchIsKeptOrDropped) {
  const FakeDataset dataset(21);
  LoaderOptions options{.batch_size = 8};
  Loader keeps(dataset, options);
  EXPECT_EQ(keeps.batches_per_epoch(), 3);
  EXPECT_EQ(keeps.images_per_epoch(), 21);
  keeps.start_epoch(0);
  const std::vector<Copy> batches = drain(keeps);
  EXPECT_EQ(batches[2].indices, (std::vector<int64_t>{16, 17, 18, 19, 20}));
  EXPECT_EQ(batches[0].labels[4], 1);
  options.drop_last = true;
  Loader drops(dataset, options);
  EXPECT_EQ(drops.batches_per_epoch(), 2);
  EXPECT_EQ(drops.images_per_epoch(), 16);
  drops.start_epoch(0);
  EXPECT_EQ(drain(drops).size(), 2u);
}

TEST_F(LoaderTest, MaxImagesTakesTheBeginningOfTheOrder) {
  const FakeDataset dataset(50);
  LoaderOptions options = training(2);
  const std::vector<int64_t> all = all_indices(epoch_of(dataset, options, 0));
  options.max_images = 19;
  EXPECT_EQ(all_indices(epoch_of(dataset, options, 0)), std::vector<int64_t>(all.begin(), all.begin() + 19));
}

TEST_F(LoaderTest, CorruptImagesAreReplacedByTheNextGoodOneAndNamed) {
  const FakeDataset dataset(300, {4, 5, 299});
  Loader loader(dataset, {.batch_size = 10, .threads = 2});
  loader.start_epoch(0);
  const std::vector<int64_t> indices = all_indices(drain(loader));
  ASSERT_EQ(indices.size(), 300u);
  EXPECT_EQ(indices[4], 6);
  EXPECT_EQ(indices[5], 6);
  EXPECT_EQ(indices[299], 0);
  ASSERT_EQ(loader.corrupt().count(), 3);
  EXPECT_EQ(loader.corrupt().entries.at(299).name, "image299");
  EXPECT_EQ(loader.corrupt().entries.at(299).reason, "broken");
  loader.start_epoch(1);
  drain(loader);
  EXPECT_EQ(loader.corrupt().count(), 3);  // each once
}

TEST_F(LoaderTest, EvaluationLeavesCorruptImagesOut) {
  const FakeDataset dataset(300, {4, 5});
  Loader loader(dataset, {.batch_size = 1, .threads = 2, .replace_corrupt = false});
  loader.start_epoch(0);
  const std::vector<int64_t> indices = all_indices(drain(loader));
  EXPECT_EQ(indices.size(), 298u);
  EXPECT_EQ(indices[4], 6);
}

TEST_F(LoaderTest, MoreThanTheAllowedFractionStopsTheRun) {
  for (int threads : {0, 1, 4}) {
    const FakeDataset dataset(300, {50, 150, 250, 299});
    Loader loader(dataset, {.batch_size = 10, .threads = threads});
    loader.start_epoch(0);
    int batches = 0;
    const std::string message = message_of([&] {
      while (loader.next()) ++batches;
    });
    EXPECT_THAT(message, AllOf(HasSubstr("4 of 300"), HasSubstr("1 %"), HasSubstr("image50: broken")));
    EXPECT_EQ(batches, 29);  // at the same batch, whatever the threads
    EXPECT_FALSE(loader.next());
  }
  EXPECT_THAT(message_of([] {
                const FakeDataset dataset(3, {0, 1, 2});
                Loader loader(dataset, {});
              }),
              HasSubstr("corrupt"));
}

TEST_F(LoaderTest, AnImageOfAnotherSizeIsAnErrorInItsTurn) {
  FakeDataset dataset(40);
  dataset.odd_size = 33;
  Loader loader(dataset, {.batch_size = 10, .threads = 3});
  loader.start_epoch(0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader.next());
  EXPECT_THAT(message_of([&] { loader.next(); }), AllOf(HasSubstr("image33: is 5 x 5"), HasSubstr("expected 6 x 6")));
}

TEST_F(LoaderTest, BuffersAreReused) {
  const FakeDataset dataset(400);
  Loader loader(dataset, {.batch_size = 10, .threads = 0});
  loader.start_epoch(0);
  std::vector<const float*> addresses;
  while (const auto batch = loader.next()) addresses.push_back(batch->images.data());
  std::ranges::sort(addresses);
  EXPECT_EQ(std::unique(addresses.begin(), addresses.end()) - addresses.begin(), 1);
}

TEST_F(LoaderTest, ABatchOutlivesItsLoader) {
  const FakeDataset dataset(10);
  std::optional<Batch> batch;
  {
    Loader loader(dataset, {.batch_size = 10});
    loader.start_epoch(0);
    batch = loader.next();
  }
  EXPECT_EQ(batch->images.data()[0], 40 / 255.0f);
}

TEST_F(LoaderTest, PrefetchIsBounded) {
  const FakeDataset dataset(1000);
  Loader loader(dataset, {.batch_size = 1, .threads = 2, .prefetch_batches = 3});
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next());
  EXPECT_LE(dataset.reads, 1 + 1 + 2 + 3);  // probe, the batch taken, five ahead
}

TEST_F(LoaderTest, RefusesOptionsOutOfRange) {
  const FakeDataset dataset(10);
  const auto error = [&](const LoaderOptions& o) { return message_of([&] { Loader(dataset, o); }); };
  EXPECT_THAT(error({.batch_size = 0}), HasSubstr("batch size 0"));
  EXPECT_THAT(error({.threads = -1}), HasSubstr("-1 threads"));
  EXPECT_THAT(error({.max_corrupt_fraction = 2}), HasSubstr("max_corrupt_fraction 2"));
}

// What parts have together is what one loader has, batch by batch in turn.
TEST(Loader, PartsHaveTheBatchesInTurn) {
  const FakeDataset dataset(23);
  for (const bool even : {false, true}) {
    LoaderOptions options{.batch_size = 3, .shuffle = true, .seed = 4, .drop_last = even};
    Loader whole(dataset, options);
    whole.start_epoch(2);
    const std::vector<Copy> all = drain(whole);  // 8 batches, the last one of 2; or 7
    std::vector<std::vector<Copy>> parts;
    for (int64_t part = 0; part < 3; ++part) {
      options.share = {.part = part, .parts = 3, .even = even};
      Loader loader(dataset, options);
      EXPECT_EQ(loader.batches_per_epoch(), even ? 2 : 3);
      EXPECT_EQ(loader.images_per_epoch(), even ? 18 : 23);
      loader.start_epoch(2);
      parts.push_back(drain(loader));
    }
    EXPECT_EQ(parts[0].size() + parts[1].size() + parts[2].size(), even ? 6u : 8u);
    for (size_t part = 0; part < 3; ++part)
      for (size_t i = 0; i < parts[part].size(); ++i) EXPECT_EQ(parts[part][i], all.at(3 * i + part));
    Loader resumed(dataset, options);  // the last part
    resumed.start_epoch(2, 1);
    EXPECT_EQ(drain(resumed).at(0), all.at(3 * 1 + 2));
  }
}

}  // namespace
}  // namespace octet::data
