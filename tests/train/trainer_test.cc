// The loop on a small real problem: bright quadrants of noisy pictures. A run that is killed with SIGKILL in the middle
// of an epoch, or stopped by request, and then continued must end with the same bytes as one that was left alone.
#include "train/trainer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "data/memory_dataset.h"
#include "ir/infer.h"
#include "onnx/export.h"

namespace octet::train {
namespace {

namespace fs = std::filesystem;
using ir::OpKind;
using ir::Tensor;

// Four classes: which quadrant of an 8x8 picture is bright.
std::unique_ptr<data::Dataset> quadrants(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  data::MemoryDataset::Contents contents;
  contents.height = contents.width = 8;
  contents.channels = 1;
  contents.class_names = {"a", "b", "c", "d"};
  data::MemoryDataset::Part part;
  part.file = "quadrants";
  part.stride = 64;
  part.count = count;
  for (int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(random() % 4);
    contents.labels.push_back(label);
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 8; ++x)
        part.bytes += static_cast<char>(random() % 120 + ((y / 4) * 2 + x / 4 == label ? 100 : 0));
  }
  contents.parts.push_back(std::move(part));
  return std::make_unique<data::MemoryDataset>(std::move(contents), 0);
}

Tensor random_tensor(ir::Shape shape, float spread, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(static_cast<size_t>(ir::element_count(shape)));
  for (float& v : values) v = normal(random);
  return Tensor::of<float>(shape, values);
}

ir::Graph small_network(bool quantized) {
  ir::Graph g;
  ir::Value* x = g.add_input("input", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 1, 8, 8}});
  const auto fake_quantize = [&](ir::Value* v, const std::string& name, Tensor scale, int64_t axis, int64_t qmin) {
    const ir::Shape shape = scale.shape();
    const std::vector<int8_t> zeros(static_cast<size_t>(ir::element_count(shape)), 0);
    return g.add(OpKind::kFakeQuantize, name,
                 {v, g.add_constant(name + "/scale", std::move(scale)),
                  g.add_constant(name + "/zero_point", Tensor::of<int8_t>(shape, zeros))},
                 {{"axis", axis}, {"qmin", qmin}});
  };
  ir::Value* w = g.add_constant("conv.weight", random_tensor({8, 1, 3, 3}, 0.4f, 1), true);
  ir::Value* b = g.add_constant("conv.bias", random_tensor({8}, 0.1f, 2), true);
  if (quantized) {
    x = fake_quantize(x, "input/fake_quantize", Tensor::scalar(1.0f / 127), 1, -128);
    w = fake_quantize(w, "conv.weight/fake_quantize", Tensor::of<float>({8}, std::vector<float>(8, 0.01f)), 0, -127);
  }
  ir::Value* y = g.add(OpKind::kConv, "conv", {x, w, b},
                       {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  if (!quantized) {
    const auto ones = Tensor::of<float>({8}, std::vector<float>(8, 1.0f));
    const auto zeros = Tensor::of<float>({8}, std::vector<float>(8, 0.0f));
    y = g.add(OpKind::kBatchNormalization, "bn",
              {y, g.add_constant("bn.weight", ones, true), g.add_constant("bn.bias", zeros, true),
               g.add_constant("bn.running_mean", zeros), g.add_constant("bn.running_var", ones)});
  }
  y = g.add(OpKind::kRelu, "relu", {y});
  y = g.add(OpKind::kMaxPool, "pool", {y},
            {{"kernel_shape", std::vector<int64_t>{4, 4}}, {"strides", std::vector<int64_t>{4, 4}}});
  y = g.add(OpKind::kFlatten, "flatten", {y});
  y = g.add(OpKind::kGemm, "fc",
            {y, g.add_constant("fc.weight", random_tensor({4, 32}, 0.1f, 3), true),
             g.add_constant("fc.bias", random_tensor({4}, 0.1f, 4), true)},
            {{"transB", int64_t{1}}});
  g.add_output(y);
  ir::infer_shapes(g);
  return g;
}

class CountingTask : public Loss {
 public:
  explicit CountingTask(data::Loader* validation) : validation_(validation) {}
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
    return {{"loss", at::cross_entropy_loss(outputs.at(0), labels(batch))}};
  }
  Validation measure() {
    return {.evaluate = [this](Executor& executor) { return evaluate(executor); }, .metric = "accuracy"};
  }

 private:
  std::map<std::string, double> evaluate(Executor& executor) {
    double right = 0, all = 0;
    validation_->start_epoch(0);
    while (auto batch = validation_->next()) {
      const at::Tensor x = at::from_blob(const_cast<float*>(batch->images.data()), {batch->size, 1, 8, 8});
      right += executor.forward({x}, Mode::kEval)[0].argmax(1).eq(labels(*batch)).sum().item<double>();
      all += static_cast<double>(batch->size);
    }
    return {{"accuracy", right / all}};
  }
  static at::Tensor labels(const data::Batch& batch) {
    std::vector<int64_t> labels = batch.labels();
    return at::from_blob(labels.data(), {batch.size}, at::kLong).clone();
  }
  data::Loader* validation_;
};

struct Variant {
  const char* name;
  const char* optimizer;
  bool quantized, ema;
};

// Kills the process, or asks for a stop, at one step of the whole run; -1: never.
struct Interruption : TrainListener {
  int64_t kill_at = -1;
  int64_t seen = 0;
  bool resumed = false;
  void on_resume(const checkpoint::RunState&) override { resumed = true; }
  void on_step(const StepRecord&) override {
    if (++seen == kill_at) ::kill(::getpid(), SIGKILL);
  }
};

struct Outcome {
  TrainResult result;
  std::string model;
  bool resumed;
};

Outcome run(const Variant& v, const fs::path& folder, int64_t kill_at, int64_t stop_at,
            const std::string& print = "x") {
  const auto training = quadrants(240, 7), held_out = quadrants(80, 8);
  data::LoaderOptions options{.batch_size = 16, .shuffle = true, .seed = 5, .threads = 1, .drop_last = true};
  options.transform.flip = false;
  options.transform.crop_padding = 1;
  data::Loader loader(*training, options);
  data::Loader validation(*held_out, {.batch_size = 40});
  CountingTask task(&validation);
  ir::Graph graph = small_network(v.quantized);
  Interruption interruption;
  interruption.kill_at = kill_at;
  TrainerOptions o;
  o.epochs = 3;
  o.optimizer.type = schema::parse_enum<OptimizerType>("optimizer", v.optimizer);
  o.optimizer.lr = std::string(v.optimizer) == "sgd" ? 0.1 : 0.01;
  o.schedule.warmup = 0.1;
  o.ema = {.enable = v.ema, .decay = 0.9};
  o.clip_grad_norm = 5;
  o.checkpoints = folder;
  o.fingerprint = print;
  if (stop_at >= 0) o.stop_requested = [&] { return interruption.seen >= stop_at; };
  fs::create_directories(folder);
  const ir::Graph executed = graph.clone();
  TrainResult result =
      train({.network = graph, .executed = executed, .loader = loader, .loss = task, .validation = task.measure()}, o,
            &interruption);
  return {std::move(result), onnx::export_bytes(graph, {.quantize_weights = false}), interruption.resumed};
}

void flip_a_bit(const fs::path& path) {
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] ^= 0x10;
  write_file_atomically(path, bytes);
}

class TrainerTest : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    folder_ = fs::temp_directory_path() / str("octet-trainer-", GetParam().name);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_P(TrainerTest, KilledAndResumedRunEndsWithTheSameBytes) {
  fs::remove_all(folder_);
  // The statement runs in a process of its own, which must die in the middle of the second epoch.
  EXPECT_EXIT(run(GetParam(), folder_ / "killed", 22, -1), ::testing::KilledBySignal(SIGKILL), "");
  ASSERT_TRUE(fs::exists(folder_ / "killed" / "epoch-1" / "state.safetensors"));
  const Outcome resumed = run(GetParam(), folder_ / "killed", -1, -1);
  const Outcome whole = run(GetParam(), folder_ / "whole", -1, -1);
  EXPECT_TRUE(resumed.resumed);
  EXPECT_FALSE(whole.resumed);
  EXPECT_GT(whole.result.run.best_metric, 0.9);
  EXPECT_EQ(resumed.model, whole.model);
  EXPECT_EQ(read_file(folder_ / "killed" / "epoch-3" / "state.safetensors"),
            read_file(folder_ / "whole" / "epoch-3" / "state.safetensors"));
  for (const auto& entry : fs::directory_iterator(folder_ / "killed"))
    EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path() << " is a left-over of a broken write";
}

TEST_P(TrainerTest, StoppedInTheMiddleOfAnEpochContinuesThere) {
  fs::remove_all(folder_);
  const Outcome stopped = run(GetParam(), folder_ / "stopped", -1, 20);
  EXPECT_TRUE(stopped.result.stopped);
  EXPECT_TRUE(fs::exists(folder_ / "stopped" / "epoch-1-batch-5"));
  const Outcome resumed = run(GetParam(), folder_ / "stopped", -1, -1);
  const Outcome whole = run(GetParam(), folder_ / "whole", -1, -1);
  EXPECT_EQ(resumed.model, whole.model);
  EXPECT_EQ(resumed.result.run.history.back().loss, whole.result.run.history.back().loss);
}

TEST_P(TrainerTest, CheckpointsOfAnotherExperimentAreRefused) {
  fs::remove_all(folder_);
  run(GetParam(), folder_, -1, 20);
  EXPECT_THROW(run(GetParam(), folder_, -1, -1, "another"), UserError);
}

// Whatever file of the newest checkpoint is damaged, the one before it is taken; with none left the run starts anew.
TEST(Trainer, DamagedCheckpointsArePassedOver) {
  const Variant variant{"sgd", "sgd", false, false};
  const fs::path folder = fs::temp_directory_path() / "octet-trainer-damaged";
  fs::remove_all(folder);
  const Outcome whole = run(variant, folder / "whole", -1, -1);
  for (const char* file : {"state.safetensors", "run.json", "model.onnx"}) {
    SCOPED_TRACE(file);
    fs::remove_all(folder / "damaged");
    run(variant, folder / "damaged", -1, 40);  // in the third epoch: leaves epoch-2 and epoch-2-batch-10
    flip_a_bit(folder / "damaged" / "epoch-2-batch-10" / file);
    const Outcome resumed = run(variant, folder / "damaged", -1, -1);
    EXPECT_TRUE(resumed.resumed);
    EXPECT_EQ(resumed.model, whole.model);
    EXPECT_FALSE(fs::exists(folder / "damaged" / "epoch-2-batch-10"));
  }
  fs::remove_all(folder / "damaged");
  run(variant, folder / "damaged", -1, 40);
  flip_a_bit(folder / "damaged" / "best" / "model.onnx");
  const Outcome anew = run(variant, folder / "damaged", -1, -1);
  EXPECT_FALSE(anew.resumed);
  EXPECT_EQ(anew.model, whole.model);
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Variants, TrainerTest,
                         ::testing::Values(Variant{"sgd", "sgd", false, false},
                                           Variant{"adamw_ema", "adamw", false, true},
                                           Variant{"qat", "adam", true, false}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace octet::train
