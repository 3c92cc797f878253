// Evaluators of parts of the data, however it was divided, say together what one says that saw all of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <random>

#include "tasks/classification/task.h"
#include "tasks/object_evaluator.h"

namespace octet::tasks {
namespace {

// Equal to the last bit; NaN is NaN.
void expect_same(double a, double b, const std::string& what) {
  EXPECT_EQ(std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b)) << what << ": " << a << ", " << b;
}

void expect_same(const Details& a, const Details& b) {
  ASSERT_EQ(a.figures.size(), b.figures.size());
  for (size_t i = 0; i < a.figures.size(); ++i)
    expect_same(a.figures[i].value, b.figures[i].value, a.figures[i].info.name);
  ASSERT_EQ(a.classes.size(), b.classes.size());
  for (size_t label = 0; label < a.classes.size(); ++label) {
    ASSERT_EQ(a.classes[label].size(), b.classes[label].size());
    for (size_t column = 0; column < a.classes[label].size(); ++column)
      expect_same(a.classes[label][column], b.classes[label][column], a.columns[column].name);
  }
  ASSERT_EQ(a.curves.size(), b.curves.size());
  for (size_t c = 0; c < a.curves.size(); ++c) {
    ASSERT_EQ(a.curves[c].lines.size(), b.curves[c].lines.size());
    for (size_t i = 0; i < a.curves[c].lines.size(); ++i) {
      EXPECT_EQ(a.curves[c].lines[i].label, b.curves[c].lines[i].label);
      EXPECT_EQ(a.curves[c].lines[i].x, b.curves[c].lines[i].x);
      EXPECT_EQ(a.curves[c].lines[i].y, b.curves[c].lines[i].y);
    }
  }
  ASSERT_EQ(a.worst.size(), b.worst.size());
  for (size_t i = 0; i < a.worst.size(); ++i) {
    EXPECT_EQ(a.worst[i].image, b.worst[i].image) << i;
    EXPECT_EQ(a.worst[i].text, b.worst[i].text) << i;
    EXPECT_EQ(a.worst[i].marks.size(), b.worst[i].marks.size()) << i;
  }
}

// `add` shows images, by their numbers in rising order, to an evaluator.
void check_splits(const std::function<std::unique_ptr<Evaluator>()>& make, size_t images,
                  const std::function<void(Evaluator&, const std::vector<size_t>&)>& add) {
  std::vector<size_t> all(images);
  for (size_t i = 0; i < images; ++i) all[i] = i;
  const auto whole = make();
  add(*whole, all);
  std::mt19937 random(17);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<size_t>> shards(1 + random() % 6);  // some may stay empty
    const bool in_turn = round % 4 == 0;                        // as ranks take images in turn
    for (const size_t i : all) shards[(in_turn ? i : random()) % shards.size()].push_back(i);
    std::shuffle(shards.begin(), shards.end(), random);
    const auto sum = make();
    for (const std::vector<size_t>& shard : shards) {
      const auto part = make();
      add(*part, shard);
      sum->merge(*part);
    }
    const Metrics a = sum->result(), b = whole->result();
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [name, value] : a) expect_same(value, b.at(name), name);
    expect_same(sum->details(), whole->details());
  }
}

data::Batch batch_of_images(const std::vector<size_t>& images) {
  data::Batch batch;
  batch.size = std::ssize(images);
  for (const size_t i : images) batch.indices.push_back(static_cast<int64_t>(i));
  return batch;
}

// Scores of which many are equal, over all images and within one: their order decides.
TEST(Merge, DetectionsOfPartsAreThoseOfAll) {
  constexpr size_t kImages = 60;
  constexpr int kClasses = 3;
  std::mt19937 random(5);
  const auto objects = [&](size_t most) {
    Objects out;
    for (size_t n = random() % (most + 1); n > 0; --n) {
      const auto x = static_cast<float>(random() % 8 * 10), y = static_cast<float>(random() % 4 * 10);
      const auto side = static_cast<float>(8 + random() % 20);
      out.push_back({.box = {x, y, x + side, y + side},
                     .label = static_cast<int>(random() % (kClasses - 1)),  // nothing is of the last class
                     .score = static_cast<float>(random() % 8) / 8});
    }
    return out;
  };
  std::vector<Objects> found, truth;
  for (size_t i = 0; i < kImages; ++i) truth.push_back(objects(5)), found.push_back(objects(4));
  for (size_t i = 0; i < kImages; i += 2) found[i].insert(found[i].end(), truth[i].begin(), truth[i].end());
  for (const bool tao : {false, true}) {
    const Detect detect = [&](const Outputs&, const data::Batch& batch) {
      Detections out{.images = {}, .classes = kClasses};
      for (const int64_t i : batch.indices) out.images.push_back(found[static_cast<size_t>(i)]);
      return out;
    };
    check_splits([&] { return object_evaluator(detect, {.tao_compatible = tao}); }, kImages,
                 [&](Evaluator& evaluator, const std::vector<size_t>& images) {
                   // Batches of seven.
                   for (size_t first = 0; first < images.size(); first += 7) {
                     const size_t end = std::min(first + 7, images.size());
                     data::Batch batch = batch_of_images({images.begin() + static_cast<ptrdiff_t>(first),
                                                          images.begin() + static_cast<ptrdiff_t>(end)});
                     for (const int64_t i : batch.indices) {
                       batch.truth.push_back({.objects = truth[static_cast<size_t>(i)]});
                       batch.geometry.push_back(data::Geometry::whole(100, 120));
                     }
                     evaluator.add({}, batch);
                   }
                 });
  }
}

TEST(Merge, ClassifiedPartsAreAllThatWasClassified) {
  constexpr size_t kImages = 100, kClasses = 7;
  std::mt19937 random(6);
  std::vector<float> scores(kImages * kClasses);
  std::vector<int> labels(kImages);
  for (float& s : scores) s = static_cast<float>(random() % 1000) / 100;
  for (int& label : labels) label = static_cast<int>(random() % (kClasses - 1));
  const classification::Task task({.top_k = 3});
  check_splits([&] { return task.evaluator(); }, kImages,
               [&](Evaluator& evaluator, const std::vector<size_t>& images) {
                 if (images.empty()) return;
                 data::Batch batch = batch_of_images(images);
                 std::vector<float> values;
                 for (const size_t i : images) {
                   batch.truth.push_back({.label = labels[i]});
                   const auto row = scores.begin() + static_cast<ptrdiff_t>(i * kClasses);
                   values.insert(values.end(), row, row + static_cast<ptrdiff_t>(kClasses));
                 }
                 evaluator.add({{"logits", {batch.size, static_cast<int64_t>(kClasses)}, values}}, batch);
               });
}

}  // namespace
}  // namespace octet::tasks
