#include "tasks/classification/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "ir/infer.h"
#include "tasks/evaluate.h"
#include "tasks/support.h"

namespace octet::tasks::classification {
namespace {

using ::testing::HasSubstr;

// Scores of a picture (a, b) are (a, b): class 0 where the left pixel is the brighter one.
class BrighterPixel : public Runner {
 public:
  Outputs run(const data::Batch& batch) override {
    return {{"logits", {batch.size, 2}, {batch.images.data(), static_cast<size_t>(2 * batch.size)}}};
  }
};

TEST(Classification, CountsHitsAndAveragesTheLoss) {
  // Three pictures: right, right, wrong.
  const auto dataset = pictures_of_two(std::string("\xff\x00\x00\xff\xff\x00", 6), {0, 1, 1});
  data::Loader loader(*dataset, {.batch_size = 2});
  BrighterPixel runner;
  int64_t seen = 0;
  const Metrics metrics = evaluate(runner, loader, Task({.top_k = 2}), [&](int64_t done) { seen = done; });
  EXPECT_EQ(seen, 3);
  EXPECT_NEAR(metrics.at("top1"), 200.0 / 3, 1e-9);
  EXPECT_EQ(metrics.at("top2"), 100);
  const double right = std::log(1 + std::exp(-1.0)), wrong = std::log(1 + std::exp(1.0));
  EXPECT_NEAR(metrics.at("loss"), (2 * right + wrong) / 3, 1e-6);
}

TEST(Classification, ShowsItsMostConfidentMistakes) {
  // Right, wrong by 1, wrong by 0.5, right.
  const auto dataset = pictures_of_two(std::string("\xff\x00\x00\xff\x80\x00\x00\xff", 8), {0, 0, 1, 1});
  BrighterPixel runner;
  Task task({.top_k = 1});
  task.name_classes({"left", "right"});
  for (const int64_t batch_size : {1, 4}) {
    data::Loader loader(*dataset, {.batch_size = batch_size});
    const auto evaluator = task.evaluator();
    run_all(runner, loader, [&](const Outputs& outputs, const data::Batch& batch) { evaluator->add(outputs, batch); });
    const Details details = evaluator->details();
    EXPECT_THAT(details.confusion, ::testing::ElementsAre(1, 1, 1, 1));
    ASSERT_EQ(details.worst.size(), 2u);
    EXPECT_EQ(details.worst[0].image, 1);
    EXPECT_EQ(details.worst[0].text, "taken for right (0.73), is left");
    EXPECT_EQ(details.worst[1].image, 2);
  }
}

TEST(Classification, ALabelBeyondTheOutputsIsAnError) {
  const auto dataset = pictures_of_two(std::string("\xff\x00", 2), {2});
  data::Loader loader(*dataset, {.batch_size = 1});
  BrighterPixel runner;
  EXPECT_THAT([&] { evaluate(runner, loader, Task({.top_k = 1})); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("image 0 has the label 2, the network has 2 outputs")));
  const auto unlabeled = pictures_of_two(std::string("\xff\x00", 2), {-1});
  data::Loader without(*unlabeled, {.batch_size = 1});
  EXPECT_THAT([&] { evaluate(runner, without, Task({.top_k = 1})); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("image 0 belongs to no class")));
}

TEST(Classification, SaysWhatDoesNotFit) {
  const ir::Graph graph = brighter_pixel();
  EXPECT_NO_THROW(Task({}).check(signature_of(graph), 2));
  try {
    Task({}).check(signature_of(graph), 10);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("has 2 classes, the spec says model.num_classes: 10"));
    EXPECT_EQ(e.code(), ExitCode::kUsage);
  }
}

}  // namespace
}  // namespace octet::tasks::classification
