#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <octet/engine.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <thread>

#include "engine/engine_file.h"
#include "engine/engine_test_util.h"
#include "engine/profiles.h"
#include "engine/typed_tensor.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;

class Api : public ::testing::Test {
 protected:
  void SetUp() override { engine::save_engine(small_plan(), path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string("octet_api_") + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".octet");
};

TEST_F(Api, LoadsDescribesAndRuns) {
  const Engine engine = Engine::load(path_.string());
  ASSERT_EQ(engine.inputs().size(), 1u);
  EXPECT_EQ(engine.inputs()[0].name, "x");
  EXPECT_EQ(engine.inputs()[0].shape, (std::vector<int64_t>{1, 3, 6, 5}));
  EXPECT_EQ(engine.outputs()[0].size(), 120);
  Context context = engine.create_context({.threads = 2, .isa = "scalar"});
  EXPECT_EQ(context.threads(), 2);
  std::vector<float> y;
  context.run(ramp(90), y);
  EXPECT_EQ(y, run(std::make_shared<const engine::Plan>(small_plan())));
}

std::string api_error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_F(Api, WhatIsNotThereIsAnError) {
  const Engine engine = Engine::load(path_.string());
  for (const int profile : {7, 1, -1}) {
    EXPECT_THAT(api_error_of([&] { engine.inputs(profile); }),
                HasSubstr("there is no profile " + std::to_string(profile)));
    EXPECT_THAT(api_error_of([&] { engine.outputs(profile); }), HasSubstr("the engine has 1"));
  }
  Context context = engine.create_context();
  const std::vector<uint8_t> pixels(90 * 4);
  EXPECT_THAT(api_error_of([&] { context.bind_image(0, pixels.data(), {.pixel_stride = -3}); }),
              HasSubstr("input 'x': the bytes between its pixels are -3, and cannot be negative"));
  EXPECT_THAT(api_error_of([&] { context.bind_image(0, pixels.data(), {.row_stride = -15}); }),
              HasSubstr("its rows are -15"));
  EXPECT_THAT(api_error_of([&] { context.bind_image(0, pixels.data(), {.image_stride = -90}); }),
              HasSubstr("its images"));
  EXPECT_THAT(api_error_of([&] { context.bind_input(0, pixels.data(), static_cast<DataType>(99)); }),
              HasSubstr("type 99, which this version of the library does not have"));
  EXPECT_THAT(api_error_of([&] { context.bind_output(0, nullptr, DataType::kInt8); }),
              HasSubstr("the pointer is null"));
  EXPECT_THAT(api_error_of([&] { context.bind_output(1, nullptr, DataType::kInt8); }), HasSubstr("no output 1"));
}

template <typename T>
std::vector<T> whole_numbers(size_t count) {
  std::vector<T> out;
  for (size_t i = 0; i < count; ++i) out.push_back(static_cast<T>(i * 7 % 120));
  return out;
}

// Inputs and outputs of a type, beside the floats of the same numbers.
template <typename T>
void expect_same_numbers(const Engine& engine, DataType type) {
  const std::vector<T> x = whole_numbers<T>(90);
  const std::vector<float> floats(x.begin(), x.end());
  std::vector<float> expected;
  engine.create_context().run(floats, expected);
  Context context = engine.create_context();
  std::vector<T> y(expected.size());
  context.bind_input(0, x.data(), type);
  context.bind_output(0, y.data(), type);
  for (int i = 0; i < 2; ++i) {
    std::fill(y.begin(), y.end(), T{});
    context.run();
    for (size_t k = 0; k < y.size(); ++k) {
      const double low = static_cast<double>(std::numeric_limits<T>::lowest()),
                   high = static_cast<double>(std::numeric_limits<T>::max());
      const double rounded = std::nearbyint(static_cast<double>(expected[k]));
      EXPECT_EQ(static_cast<double>(y[k]), std::clamp(rounded, low, high)) << k;
    }
  }
  // Floats again, and images.
  std::vector<float> again(expected.size());
  context.bind_input(0, floats.data());
  context.bind_output(0, again.data());
  context.run();
  EXPECT_EQ(again, expected);
}

TEST_F(Api, TensorsOfIntegersAreThoseNumbers) {
  const Engine engine = Engine::load(path_.string());
  EXPECT_EQ(engine.inputs()[0].type, DataType::kFloat32);
  EXPECT_EQ(engine.outputs()[0].type, DataType::kFloat32);
  expect_same_numbers<uint8_t>(engine, DataType::kUInt8);
  expect_same_numbers<int8_t>(engine, DataType::kInt8);
  expect_same_numbers<int32_t>(engine, DataType::kInt32);
  expect_same_numbers<int64_t>(engine, DataType::kInt64);
}

TEST(TypedTensor, RoundsToTheNearestAndStaysWithinTheType) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.5f, 1.5f, -0.5f, -1.5f, 300, -300, 1e20f, -1e20f, inf, -inf, nan};
  const auto converted = [&](auto element, DataType type) {
    std::vector<decltype(element)> out(values.size());
    engine::from_floats(values, out.data(), type);
    return out;
  };
  EXPECT_EQ(converted(uint8_t{}, DataType::kUInt8), (std::vector<uint8_t>{0, 2, 0, 0, 255, 0, 255, 0, 255, 0, 0}));
  EXPECT_EQ(converted(int8_t{}, DataType::kInt8),
            (std::vector<int8_t>{0, 2, 0, -2, 127, -128, 127, -128, 127, -128, 0}));
  constexpr int32_t k32 = std::numeric_limits<int32_t>::max(), k32min = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(converted(int32_t{}, DataType::kInt32),
            (std::vector<int32_t>{0, 2, 0, -2, 300, -300, k32, k32min, k32, k32min, 0}));
  constexpr int64_t k64 = std::numeric_limits<int64_t>::max(), k64min = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(converted(int64_t{}, DataType::kInt64),
            (std::vector<int64_t>{0, 2, 0, -2, 300, -300, k64, k64min, k64, k64min, 0}));
}

TEST_F(Api, SaysWhenAnInferenceIsDone) {
  const Engine engine = Engine::load(path_.string());
  Throughput pool = engine.create_throughput({.workers = 2});
  const std::vector<float> x = ramp(90);
  const std::vector<float> expected = run(std::make_shared<const engine::Plan>(small_plan()));
  constexpr size_t kRuns = 30;
  std::vector<std::vector<float>> results(kRuns, std::vector<float>(expected.size()));
  std::vector<std::atomic<uint64_t>> finished(kRuns);
  std::vector<Throughput::Ticket> tickets;
  for (size_t i = 0; i < kRuns; ++i)
    tickets.push_back(pool.submit({x.data()}, {results[i].data()}, [&, i](uint64_t ticket) {
      EXPECT_EQ(results[i], expected);  // what it announces is there
      finished[i] = ticket;
    }));
  for (size_t i = 0; i < kRuns; ++i) {
    pool.wait(tickets[i]);
    EXPECT_EQ(finished[i], tickets[i]) << "it is called before wait() returns";
  }
  // One without it behind one with it, in the same place of the queue.
  std::fill(finished.begin(), finished.end(), 0);
  for (size_t i = 0; i < kRuns; ++i) pool.submit({x.data()}, {results[i].data()});
  pool.wait_all();
  for (const auto& each : finished) EXPECT_EQ(each, 0u);
}

TEST_F(Api, ContextsChooseAProfile) {
  std::vector<engine::Plan> plans{small_plan(), small_plan()};
  for (engine::Buffer& b : plans[1].buffers) b.shape[0] = 2;
  engine::plan_memory(plans[1]);
  engine::save_engine(engine::merge_profiles(std::move(plans)), path_);
  const Engine engine = Engine::load(path_.string());
  EXPECT_EQ(engine.profiles(), 2);
  EXPECT_EQ(engine.find_profile({1, 3, 6, 5}), 0);
  const int two = engine.find_profile({2, 3, 6, 5});
  EXPECT_EQ(two, 1);
  EXPECT_EQ(engine.inputs(two)[0].shape, (std::vector<int64_t>{2, 3, 6, 5}));
  EXPECT_EQ(engine.layers("scalar", two).size(), engine.layers("scalar").size());
  std::vector<float> image = ramp(90), pair = image, y, both;
  pair.insert(pair.end(), image.begin(), image.end());
  engine.create_context().run(image, y);
  engine.create_context({.profile = two}).run(pair, both);
  ASSERT_EQ(both.size(), 2 * y.size());
  EXPECT_TRUE(std::equal(y.begin(), y.end(), both.begin()));
  EXPECT_TRUE(std::equal(y.begin(), y.end(), both.begin() + static_cast<std::ptrdiff_t>(y.size())));
  EXPECT_THAT(api_error_of([&] {
                engine.find_profile({3, 3, 6, 5});
              }),
              HasSubstr("no profile for the input 3x3x6x5; it has 1x3x6x5, 2x3x6x5"));
  EXPECT_THAT(api_error_of([&] { engine.create_context({.profile = 2}); }), HasSubstr("there is no profile 2"));
}

TEST_F(Api, ReportsLayersAndTimes) {
  const Engine engine = Engine::load(path_.string());
  const auto layers = engine.layers("scalar");
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[1].op, "Conv+Relu");
  EXPECT_EQ(layers[1].precision, "int8");
  EXPECT_EQ(layers[1].kernel, "conv direct scalar");
  Context context = engine.create_context();
  const std::vector<float> x = ramp(90);
  std::vector<float> y(120);
  for (const LayerReport& l : context.profile({x.data()}, {y.data()}, 3)) EXPECT_GT(l.microseconds, 0) << l.name;
}

TEST_F(Api, BoundTensorsAreUsedInPlace) {
  const Engine engine = Engine::load(path_.string());
  Context context = engine.create_context({.threads = 2});
  std::vector<float> x = ramp(90), y(120, -1);
  context.bind_input(0, x.data());
  context.bind_output(0, y.data());
  context.run();
  EXPECT_EQ(y, run(std::make_shared<const engine::Plan>(small_plan())));
  std::reverse(x.begin(), x.end());
  std::vector<float> expected;
  engine.create_context().run(x, expected);
  context.run();
  EXPECT_EQ(y, expected);
}

TEST_F(Api, PixelsGiveTheBitsOfTheirFloats) {
  const Engine engine = Engine::load(path_.string());
  Context context = engine.create_context({.threads = 2});
  ImageFormat format;
  format.pixel_stride = 4, format.row_stride = 23;
  const int order[] = {2, 1, 0};
  for (int c = 0; c < 3; ++c)
    format.channel[c] = order[c], format.scale[c] = 0.01f * static_cast<float>(c + 1), format.offset[c] = -1.3f;
  std::vector<uint8_t> pixels(6 * 23);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 89 + 7);
  std::vector<float> x(90), expected, y(120);
  for (int c = 0; c < 3; ++c)
    for (int h = 0; h < 6; ++h)
      for (int w = 0; w < 5; ++w)
        x[(c * 6 + h) * 5 + w] =
            static_cast<float>(pixels[h * 23 + w * 4 + order[c]]) * format.scale[c] + format.offset[c];
  context.run(x, expected);
  context.bind_image(0, pixels.data(), format);
  context.bind_output(0, y.data());
  context.run();
  EXPECT_EQ(y, expected);
  // Floats again.
  std::vector<float> zeros(90), y_zero;
  context.run(zeros, y_zero);
  EXPECT_NE(y_zero, expected);
}

TEST_F(Api, PixelsForStepsThatNeedFloats) {
  engine::Plan plan{.name = "floats", .isa = "scalar"};
  plan.buffers = {{.name = "x", .shape = {2, 3, 2, 2}}, {.name = "y", .shape = {2, 3, 2, 2}}};
  plan.steps = {{.kind = "unary", .name = "y", .op = "Relu", .inputs = {0}, .outputs = {1}, .ints = {{"function", 0}}}};
  plan.inputs = {0}, plan.outputs = {1};
  engine::plan_memory(plan);
  engine::save_engine(plan, path_);
  Context context = Engine::load(path_.string()).create_context({.threads = 1});
  std::vector<uint8_t> pixels(24);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i);
  std::vector<float> y(24);
  context.bind_image(0, pixels.data());
  context.bind_output(0, y.data());
  context.run();
  std::vector<float> x, expected;
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 3; ++c)
      for (int p = 0; p < 4; ++p) x.push_back(static_cast<float>(n * 12 + p * 3 + c));
  context.run(x, expected);
  EXPECT_EQ(y, expected);
}

TEST_F(Api, RunsOnThreadsOfTheCaller) {
  const Engine engine = Engine::load(path_.string());
  const std::vector<float> expected = run(std::make_shared<const engine::Plan>(small_plan()));
  ContextOptions options;
  options.threads = 3;
  int calls = 0;
  options.pool.user = &calls;
  options.pool.run = [](void* user, int parts, void (*work)(void*, int), void* task) {
    ++*static_cast<int*>(user);
    for (int part = 0; part < parts; ++part) work(task, part);
  };
  std::vector<float> y;
  engine.create_context(options).run(ramp(90), y);
  EXPECT_EQ(y, expected);
  EXPECT_EQ(calls, 1) << "one call for all steps";
  options.pool.run = [](void* user, int parts, void (*work)(void*, int), void* task) {
    ++*static_cast<int*>(user);
    std::vector<std::thread> threads;
    for (int part = 0; part < parts; ++part) threads.emplace_back(work, task, part);
    for (std::thread& t : threads) t.join();
  };
  calls = 0;
  engine.create_context(options).run(ramp(90), y);
  EXPECT_EQ(y, expected);
  EXPECT_EQ(calls, 1) << "one call for all steps";
}

TEST_F(Api, ContextsOutliveTheEngineAndRunTogether) {
  std::vector<Context> contexts;
  {
    const Engine engine = Engine::load(path_.string());
    for (int i = 0; i < 4; ++i) contexts.push_back(engine.create_context({.threads = 1 + i % 2}));
  }
  const std::vector<float> expected = run(std::make_shared<const engine::Plan>(small_plan()));
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (Context& c : contexts)
    callers.emplace_back([&] {
      std::vector<float> y;
      for (int i = 0; i < 50; ++i) {
        c.run(ramp(90), y);
        wrong += y != expected;
      }
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Api, ThroughputGivesTheSameBitsInAnyOrder) {
  const Engine engine = Engine::load(path_.string());
  constexpr int kRequests = 100;
  std::vector<std::vector<float>> x, y(kRequests, std::vector<float>(120, -1)), expected(kRequests);
  Context context = engine.create_context();
  for (int i = 0; i < kRequests; ++i) {
    x.push_back(ramp(90));
    x.back()[i % 90] += 0.5f;
    context.run(x.back(), expected[i]);
  }
  Throughput pool = engine.create_throughput({.workers = 3, .queue = 4});
  EXPECT_EQ(pool.workers(), 3);
  std::vector<Throughput::Ticket> tickets;
  for (int i = 0; i < kRequests; ++i) tickets.push_back(pool.submit({x[i].data()}, {y[i].data()}));
  pool.wait(tickets[7]);
  EXPECT_EQ(y[7], expected[7]);
  pool.wait_all();
  EXPECT_EQ(y, expected);
  for (Throughput::Ticket t : tickets) pool.wait(t);
}

TEST_F(Api, AFullQueueIsReported) {
  const Engine engine = Engine::load(path_.string());
  Throughput pool = engine.create_throughput({.workers = 1, .queue = 2});
  const std::vector<float> x = ramp(90);
  std::vector<std::vector<float>> y(400, std::vector<float>(120));
  int refused = 0;
  for (auto& out : y) {
    const float* in[] = {x.data()};
    float* to[] = {out.data()};
    Throughput::Ticket ticket = 0;
    if (pool.submit(in, to, &ticket, false)) continue;
    ++refused;
    EXPECT_EQ(ticket, 0u);
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 400);
  pool.wait_all();  // the tensors must stay so long
}

TEST_F(Api, ErrorsAreSentences) {
  const auto error = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error([] { Engine::load("/nonexistent.octet"); }), HasSubstr("/nonexistent.octet"));
  const Engine engine = Engine::load(path_.string());
  EXPECT_THAT(error([&] { engine.create_context({.isa = "sse9"}); }), HasSubstr("unknown instruction set 'sse9'"));
  Context context = engine.create_context();
  std::vector<float> y;
  EXPECT_THAT(error([&] { context.run(std::vector<float>(7), y); }), HasSubstr("7 elements; the engine expects 90"));
  EXPECT_THAT(error([&] { context.run({}, {y.data()}); }), HasSubstr("0 inputs"));
  Context unbound = engine.create_context();
  EXPECT_THAT(error([&] { unbound.run(); }), HasSubstr("input 0 ('x') is not bound"));
  unbound.bind_input(0, ramp(90).data());
  EXPECT_THAT(error([&] { unbound.run(); }), HasSubstr("output 0 ('y') is not bound"));
  EXPECT_THAT(error([&] { unbound.bind_output(1, nullptr); }), HasSubstr("no output 1"));
  ImageFormat format;
  format.channel[1] = 3;
  const uint8_t pixel = 0;
  EXPECT_THAT(error([&] { unbound.bind_image(0, &pixel, format); }), HasSubstr("cannot be byte 3 of a pixel of 3"));
  EXPECT_THAT(error([&] { engine.create_context({.threads = 2, .cpus = {0, 7999}}); }), HasSubstr("CPU 7999"));
  EXPECT_THAT(error([&] { engine.create_throughput({.workers = 1, .cpus = {7999}}); }), HasSubstr("CPU 7999"));
  EXPECT_THAT(error([&] { engine.create_throughput({.workers = -1}); }), HasSubstr("workers = -1"));
  Throughput pool = engine.create_throughput({.workers = 1});
  EXPECT_THAT(error([&] { pool.wait(5); }), HasSubstr("ticket 5"));
  EXPECT_THAT(error([&] { pool.submit({nullptr}, {y.data()}); }), HasSubstr("input 0 ('x') has no memory"));
  EXPECT_THAT(error([] { Engine::from_memory("nothing", 7, "blob"); }), HasSubstr("blob: not an Octet engine file"));
}

}  // namespace
}  // namespace octet::testing
