#include "tasks/detectnet_v2/postprocessing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "tasks/detectnet_v2/decode.h"
#include "tasks/detectnet_v2/task.h"

namespace octet::tasks::detectnet_v2 {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using vision::Box;
using vision::Object;

// Cells around one object say slightly different things, and one beside them stands alone.
const std::vector<Object> kHeap{{.box = {10, 10, 60, 60}, .score = 0.5f},
                                {.box = {11, 10, 61, 60}, .score = 0.3f},
                                {.box = {10, 11, 60, 62}, .score = 0.2f},
                                {.box = {200, 10, 260, 60}, .score = 0.4f}};

std::vector<Object> clustered(const std::vector<Object>& proposals, const ClusteringOptions& options,
                              bool tao = false) {
  return cluster(proposals, {.clustering = options, .tao_compatible = tao});
}

// By hand: weights 0.5, 0.3, 0.2.
TEST(Dbscan, TakesTheWeightedMean) {
  const std::vector<Object> found = clustered(kHeap, {.dbscan_min_samples = 0.45});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FLOAT_EQ(found[0].score, 1.0f);
  EXPECT_FLOAT_EQ(found[0].box.x0, 10.3f);
  EXPECT_FLOAT_EQ(found[0].box.y1, 60.4f);
}

TEST(Dbscan, DropsUnsureAndLowHeaps) {
  const auto left = [](double confidence, double height) {
    return clustered(kHeap, {.dbscan_min_samples = 0.45,
                             .dbscan_confidence_threshold = confidence,
                             .minimum_bounding_box_height = height})
        .size();
  };
  EXPECT_EQ(left(0.99, 50), 1u);
  EXPECT_EQ(left(1.01, 50), 0u);
  EXPECT_EQ(left(0.5, 50.21), 0u);  // the mean is 50.2 high
}

TEST(Dbscan, ConfidenceIsTheSumOrTheMean) {
  const std::vector<Object> sum = clustered(kHeap, {.dbscan_min_samples = 0.3}),
                            mean = clustered(kHeap, {.dbscan_min_samples = 0.3, .confidence = Confidence::kMeanCov});
  ASSERT_EQ(sum.size(), 2u);
  ASSERT_EQ(mean.size(), 2u);
  EXPECT_FLOAT_EQ(sum[0].score, 1.0f);
  EXPECT_FLOAT_EQ(mean[0].score, 0.4f);  // the box that stands alone is surer now
  EXPECT_FLOAT_EQ(mean[0].box.x0, 200);
  EXPECT_FLOAT_EQ(mean[1].score, 1.0f / 3);
}

TEST(Nms, TakesTheBestCoveredBox) {
  const std::vector<Object> proposals{{.box = {10, 10, 60, 60}, .score = 0.5f},
                                      {.box = {11, 10, 61, 60}, .score = 0.7f},
                                      {.box = {200, 10, 260, 60}, .score = 0.4f},
                                      {.box = {11, 10, 61, 60}, .label = 1, .score = 0.1f}};
  const std::vector<Object> found =
      clustered(proposals, {.algorithm = Clustering::kNms, .nms_confidence_threshold = 0.2});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].box, proposals[1].box);
  EXPECT_EQ(found[1].box, proposals[2].box);
}

// 10 x 10 pixels whose IoU is 1/3, and (6 + 1) * 11 / (2 * 121 - 77) = 0.467 with both borders counted.
TEST(Nms, BordersCountAsTaoHasThemOnDemand) {
  const std::vector<Object> proposals{{.box = {0, 0, 10, 10}, .score = 0.9f}, {.box = {4, 0, 14, 10}, .score = 0.8f}};
  const auto found = [&](double threshold, bool tao) {
    return clustered(proposals, {.algorithm = Clustering::kNms, .nms_iou_threshold = threshold}, tao).size();
  };
  const double exclusive = 60.0 / 140, inclusive = 77.0 / 165;
  EXPECT_EQ(found(exclusive + 0.001, false), 2u);
  EXPECT_EQ(found(exclusive - 0.001, false), 1u);
  EXPECT_EQ(found(inclusive + 0.001, true), 2u);
  EXPECT_EQ(found(inclusive - 0.001, true), 1u);
}

TEST(Nms, TheMinimumHeightHoldsUnlessTaoSaysOtherwise) {
  const ClusteringOptions options{.algorithm = Clustering::kNms, .minimum_bounding_box_height = 50};
  EXPECT_THAT(clustered(kHeap, options), IsEmpty());  // 50 is no higher than 50
  EXPECT_EQ(clustered(kHeap, options, true).size(), 2u);
}

// Boxes of heaps alone compete, and the best of each is taken as it is.
TEST(Hybrid, TakesTheBestBoxOfEachHeap) {
  ClusteringOptions options{.algorithm = Clustering::kHybrid, .dbscan_min_samples = 0.45};
  std::vector<Object> found = clustered(kHeap, options);
  ASSERT_EQ(found.size(), 1u);  // the box that stands alone makes no heap
  EXPECT_EQ(found[0].box, kHeap[0].box);
  EXPECT_EQ(found[0].score, 0.5f);
  options.dbscan_min_samples = 0.3;
  EXPECT_EQ(clustered(kHeap, options).size(), 2u);
  options.dbscan_confidence_threshold = 0.5;  // of the heap's sum
  EXPECT_EQ(clustered(kHeap, options).size(), 1u);
  options.nms_confidence_threshold = 0.6;  // of a box
  EXPECT_THAT(clustered(kHeap, options), IsEmpty());
}

// Two heaps that DBSCAN keeps apart are one thing to NMS.
TEST(Hybrid, HeapsThatOverlapBecomeOneDetection) {
  const std::vector<Object> proposals{{.box = {0, 0, 50, 50}, .score = 0.6f}, {.box = {0, 0, 50, 70}, .score = 0.7f}};
  EXPECT_EQ(clustered(proposals, {.dbscan_min_samples = 0.5}).size(), 2u);
  const std::vector<Object> found =
      clustered(proposals, {.algorithm = Clustering::kHybrid, .dbscan_min_samples = 0.5, .nms_iou_threshold = 0.5});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].box, proposals[1].box);
}

TEST(TaoCompatible, TakesEachConfidenceThresholdForTheOthers) {
  const auto left = [](Clustering algorithm, double of_dbscan, double of_nms, bool tao) {
    return clustered(kHeap,
                     {.algorithm = algorithm,
                      .dbscan_min_samples = 1,
                      .dbscan_confidence_threshold = of_dbscan,
                      .nms_confidence_threshold = of_nms},
                     tao)
        .size();
  };
  EXPECT_EQ(left(Clustering::kDbscan, 2, 0, false), 0u);
  EXPECT_EQ(left(Clustering::kDbscan, 2, 0, true), 1u);
  EXPECT_EQ(left(Clustering::kDbscan, 0, 2, true), 0u);
  EXPECT_EQ(left(Clustering::kNms, 0, 0.45, false), 1u);
  EXPECT_EQ(left(Clustering::kNms, 0, 0.45, true), 2u);
  EXPECT_EQ(left(Clustering::kNms, 0.45, 0, true), 1u);
  // TAO's inference does not mistake them.
  EXPECT_EQ(left(Clustering::kHybrid, 2, 0, true), 0u);
  EXPECT_EQ(left(Clustering::kHybrid, 0, 0.45, true), 1u);
}

TEST(TaoCompatible, MinimumSamplesAreAWholeNumber) {
  EXPECT_EQ(clustered(kHeap, {.dbscan_min_samples = 0.3}, true).size(), 1u);  // 1
  EXPECT_EQ(clustered(kHeap, {.dbscan_min_samples = 1.9}, true).size(), 1u);  // 1
  EXPECT_EQ(clustered(kHeap, {.dbscan_min_samples = 1.9}).size(), 0u);
}

TEST(TaoCompatible, MeanCoverageLiesBetweenTheExtremes) {
  const std::vector<Object> found =
      clustered(kHeap, {.dbscan_min_samples = 1, .confidence = Confidence::kMeanCov}, true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].score, (1.0 / 3 - 0.2) / 0.3, 1e-6);
}

TEST(Classes, HaveTheirOwnOptions) {
  PostprocessingOptions options{.clustering = ClusteringOptions{.dbscan_min_samples = 0.3}};
  options.clustering.named = {{"person", {.algorithm = Clustering::kNms}}};
  std::vector<Object> proposals = kHeap;
  for (Object object : kHeap) proposals.push_back((object.label = 1, object));
  EXPECT_EQ(cluster(proposals, options)[2].score, 1.0f);  // classes have no names yet
  options.clustering.resolve({"car", "person"}, "key");
  const std::vector<Object> found = cluster(proposals, options);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].score, 1.0f);
  EXPECT_EQ(found[2].score, 0.5f);
  EXPECT_EQ(found[2].label, 1);
}

TEST(Classes, ThatAreNotThereAreNamedWithTheNearest) {
  Options options;
  options.postprocessing.clustering.named = {{"persn", {}}};
  Task task(options);
  try {
    task.name_classes({"car", "person"});
    FAIL() << "taken";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("detectnet_v2.postprocessing.target_class_config names the class 'persn'"));
    EXPECT_THAT(e.what(), HasSubstr("person'?"));
  }
}

TEST(Classes, ProposeFromTheirOwnCoverage) {
  const Grid grid{.classes = 2, .rows = 2, .columns = 2, .stride = 16};
  const std::vector<float> coverage(static_cast<size_t>(grid.coverage_size()), 0.4f),
      boxes(static_cast<size_t>(grid.box_size()), 0.1f);
  PostprocessingOptions options{.clustering = ClusteringOptions{.coverage_threshold = 0.5}};
  options.clustering.named = {{"person", {.coverage_threshold = 0.3}}};
  options.clustering.resolve({"car", "person"}, "key");
  const std::vector<Object> found = propose(coverage, boxes, grid, options);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].label, 1);
  options.clustering.named[0].second.coverage_threshold = 0.4f;  // exactly: no more than this proposes nothing
  options.clustering.resolve({"car", "person"}, "key");
  EXPECT_THAT(propose(coverage, boxes, grid, options), IsEmpty());
}

// DBSCAN by its definition: cores that reach one another through cores are one heap, by the closure of the relation.
TEST(Dbscan, EqualsItsDefinition) {
  std::mt19937 random(5);
  const auto between = [&](int low, int high) {
    return static_cast<float>(low + static_cast<int>(random() % static_cast<unsigned>(high - low)));
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<Object> proposals;
    for (int i = 0; i < 25; ++i) {
      const float x = between(0, 60), y = between(0, 20);
      proposals.push_back({.box = {x, y, x + between(30, 50), y + between(30, 50)}, .score = between(1, 16) / 16});
    }
    const size_t n = proposals.size();
    const double eps = 0.4, samples = 1.5;
    std::vector<std::vector<bool>> near(n, std::vector<bool>(n)), joined = near;
    std::vector<bool> core(n);
    for (size_t a = 0; a < n; ++a) {
      double weight = 0;
      for (size_t b = 0; b < n; ++b) {
        const Box &p = proposals[a].box, &q = proposals[b].box;
        const float w = std::min(p.x1, q.x1) - std::max(p.x0, q.x0), h = std::min(p.y1, q.y1) - std::max(p.y0, q.y0);
        const float common = std::max(w, 0.0f) * std::max(h, 0.0f);
        const float all = p.width() * p.height() + q.width() * q.height() - common;
        near[a][b] = a == b || 1 - common / all <= static_cast<float>(eps);
        if (near[a][b]) weight += proposals[b].score;
      }
      core[a] = weight >= samples;
    }
    for (size_t a = 0; a < n; ++a)
      for (size_t b = 0; b < n; ++b) joined[a][b] = core[a] && core[b] && near[a][b];
    for (size_t k = 0; k < n; ++k)
      for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
          if (joined[a][k] && joined[k][b]) joined[a][b] = true;
    // Heaps in the order of their first core; a box that is none belongs to the first heap with a core near it.
    std::vector<int> heap(n, -1);
    int heaps = 0;
    for (size_t a = 0; a < n; ++a) {
      if (!core[a] || heap[a] >= 0) continue;
      for (size_t b = 0; b < n; ++b)
        if (joined[a][b]) heap[b] = heaps;
      ++heaps;
    }
    for (size_t b = 0; b < n; ++b)
      for (size_t a = 0; a < n; ++a)
        if (!core[b] && core[a] && near[a][b] && (heap[b] < 0 || heap[a] < heap[b])) heap[b] = heap[a];
    std::vector<double> sums(static_cast<size_t>(heaps), 0);
    for (size_t a = 0; a < n; ++a)
      if (heap[a] >= 0) sums[static_cast<size_t>(heap[a])] += proposals[a].score;
    std::sort(sums.rbegin(), sums.rend());

    const std::vector<Object> found = clustered(proposals, {.dbscan_eps = eps, .dbscan_min_samples = samples});
    ASSERT_EQ(found.size(), sums.size()) << round;
    for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(found[i].score, sums[i], 1e-5) << round;
  }
}

}  // namespace
}  // namespace octet::tasks::detectnet_v2
