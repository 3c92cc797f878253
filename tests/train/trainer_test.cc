// The loop on a small real problem. A run that is killed with SIGKILL in the middle of an epoch, or stopped by request,
// and then continued must end with the same bytes as one that was left alone.
#include "train/trainer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "train/constants.h"
#include "train/saved_tensors.h"
#include "train/small_training.h"

namespace octet::train {
namespace {

namespace fs = std::filesystem;
using testing::quadrants;
using testing::QuadrantTask;
using testing::small_network;

struct Variant {
  const char* name;
  const char* optimizer;
  bool quantized, ema;
  bool stateful = false;  // what else has a state: the loss, its scaling, the schedule
  Precision precision = Precision::kFloat32;
};

// A loss that learns over an epoch: its weight is the mean loss of the last one.
class Remembering : public QuadrantTask {
 public:
  using QuadrantTask::QuadrantTask;
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
    LossParts parts = QuadrantTask::operator()(outputs, batch);
    sum_ = sum_ + parts[0].second.detach();
    ++count_;
    parts[0].second = parts[0].second * weight_;
    return parts;
  }
  void end_epoch(Communicator& communicator) override {
    weight_ = sum_ / count_;
    communicator.all_reduce({&weight_, 1}, Reduce::kMean);
    sum_ = at::zeros({});
    count_ = 0;
  }
  void save(checkpoint::NamedTensors& state) const override {
    state["loss/weight"] = to_constant(weight_);
    state["loss/sum"] = to_constant(sum_);
    state["loss/count"] = ir::Tensor::scalar<int64_t>(count_);
  }
  void load(const checkpoint::NamedTensors& state) override {
    restore(weight_, state, "loss/weight");
    restore(sum_, state, "loss/sum");
    count_ = saved_entry(state, "loss/count").to_ints().at(0);
  }

 private:
  at::Tensor weight_ = at::ones({}), sum_ = at::zeros({});
  int64_t count_ = 0;
};

// Kills the process, or asks for a stop, at one step of the whole run; -1: never.
struct Interruption : TrainListener {
  int64_t kill_at = -1;
  int64_t seen = 0;
  bool resumed = false;
  int64_t next = -1;  // step of the epoch
  void on_resume(const checkpoint::RunState&) override { resumed = true; }
  void on_epoch_start(int64_t, int64_t done, int64_t steps) override {
    EXPECT_LT(done, steps);
    next = done + 1;
  }
  void on_step(const StepRecord& step) override {
    EXPECT_EQ(step.step, next++) << "an epoch starts before its first step";
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
  QuadrantTask plain(&validation);
  Remembering remembering(&validation);
  QuadrantTask& task = v.stateful ? remembering : plain;
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
  if (v.stateful) {
    o.regularizer = {RegularizerType::kL2, 1e-4};
    o.cost_scaling = {.enabled = true, .initial_exponent = 120, .increment = 0.5};  // overflows at first
    o.schedule = {.type = ScheduleType::kEarlyStoppingAnnealing,
                  .min_lr = 0.001,
                  .soft_start_epochs = 1,
                  .annealing_epochs = 1,
                  .patience_steps = 1};
  }
  o.executor.precision = v.precision;
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

// Of this process and of those that its death tests start anew.
fs::path scratch_folder(const std::string& name) {
  ::setenv("OCTET_TRAINER_TEST", std::to_string(::getpid()).c_str(), 0);
  return fs::temp_directory_path() / str("octet-trainer-", std::getenv("OCTET_TRAINER_TEST"), "-", name);
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
    folder_ = scratch_folder(GetParam().name);
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

// Whether the scale of each row of weights is what its largest weight asks for.
void expect_scales_of_the_weights(const ir::Graph& graph, const std::string& which) {
  const std::vector<float> weights = graph.find_value("conv.weight")->constant->to_floats();
  const std::vector<float> scales = graph.find_value("conv.weight/fake_quantize/scale")->constant->to_floats();
  for (size_t c = 0; c < scales.size(); ++c) {
    float largest = 0;
    for (size_t i = c * 9; i < (c + 1) * 9; ++i) largest = std::max(largest, std::abs(weights[i]));
    EXPECT_FLOAT_EQ(scales[c], largest / 127) << which << ", channel " << c;
  }
}

TEST(Trainer, WeightsAndTheirAverageHaveScalesOfTheirOwn) {
  const fs::path folder = scratch_folder("average");
  const auto pictures = quadrants(64, 7);
  data::Loader loader(*pictures, {.batch_size = 16, .threads = 1}), validation(*pictures, {.batch_size = 32});
  for (const bool measured : {false, true}) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    QuadrantTask task(&validation);
    TrainerOptions o;
    o.epochs = 2;
    o.optimizer.lr = 0.1;
    o.ema = {.enable = true, .decay = 0.9};
    o.checkpoints = folder;
    ir::Graph graph = small_network(true);
    const ir::Graph executed = graph.clone();
    train({.network = graph,
           .executed = executed,
           .loader = loader,
           .loss = task,
           .validation = measured ? task.measure() : Validation{}},
          o);
    expect_scales_of_the_weights(graph, measured ? "the best" : "the average");
    expect_scales_of_the_weights(onnx::import_model((folder / "epoch-2" / "model.onnx").string()), "the checkpoint");
  }
  fs::remove_all(folder);
}

TEST_P(TrainerTest, CheckpointsOfAnotherExperimentAreRefused) {
  fs::remove_all(folder_);
  run(GetParam(), folder_, -1, 20);
  EXPECT_THROW(run(GetParam(), folder_, -1, -1, "another"), UserError);
}

// Whatever file of the newest checkpoint is damaged, the one before it is taken; with none left the run starts anew.
TEST(Trainer, DamagedCheckpointsArePassedOver) {
  const Variant variant{"sgd", "sgd", false, false};
  const fs::path folder = scratch_folder("damaged");
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

// Blows up at one of its steps, as a batch with a broken image does.
class Explosive : public QuadrantTask {
 public:
  explicit Explosive(int64_t at) : QuadrantTask(nullptr), at_(at) {}
  LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
    LossParts parts = QuadrantTask::operator()(outputs, batch);
    if (calls_++ == at_) parts[0].second = parts[0].second / 0.0;
    return parts;
  }

 private:
  int64_t at_, calls_ = 0;
};

TEST(Trainer, GoesOnWithoutTheStepWhoseLossIsNotFinite) {
  const fs::path folder = scratch_folder("explosive");
  const auto train_with = [&](NonFiniteOptions non_finite, int64_t images, float broken = 0) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    const auto pictures = quadrants(images, 7);
    data::Loader loader(*pictures, {.batch_size = 16, .drop_last = true});
    Explosive task(1);
    TrainerOptions o;
    o.epochs = 1;
    o.optimizer.lr = 0.1;
    o.schedule.type = ScheduleType::kConstant;
    o.non_finite = non_finite;
    o.checkpoints = folder;
    ir::Graph graph = small_network(false);
    if (broken != 0)
      graph.find_value("conv.weight")->constant = ir::Tensor::of<float>({8, 1, 3, 3}, std::vector<float>(72, broken));
    const ir::Graph executed = graph.clone();
    return train({.network = graph, .executed = executed, .loader = loader, .loss = task, .validation = {}}, o).run;
  };
  try {
    train_with({}, 64);
    ADD_FAILURE() << "went on";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("batch 2; every tensor of the network is finite"), std::string::npos)
        << e.what();
  }
  try {
    train_with({}, 64, 3e38f);
    ADD_FAILURE() << "went on";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("the first tensor that is not finite is 'conv"), std::string::npos)
        << e.what();
  }
  const checkpoint::RunState skipped = train_with({.policy = NonFinitePolicy::kSkip}, 64);
  EXPECT_EQ(skipped.epochs_done, 1);
  EXPECT_TRUE(std::isfinite(skipped.history.at(0).loss));
  EXPECT_EQ(skipped.back_off, 1);
  EXPECT_NEAR(skipped.history.at(0).learning_rate, 0.1, 1e-12);
  const checkpoint::RunState slower = train_with({.policy = NonFinitePolicy::kBackOff, .back_off_factor = 0.25}, 64);
  EXPECT_EQ(slower.back_off, 0.25);
  EXPECT_NEAR(slower.history.at(0).learning_rate, 0.025, 1e-12);
  EXPECT_THROW(train_with({.policy = NonFinitePolicy::kSkip, .max_in_a_row = 2}, 64, 3e38f), UserError);
  fs::remove_all(folder);
}

// A training of `epochs` epochs whose validation gives these values, one after the other; the last one stays.
TrainResult run_with_values(const fs::path& folder, std::vector<double> values, TrainerOptions o, ir::Graph& graph) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto pictures = quadrants(64, 7);
  data::Loader loader(*pictures, {.batch_size = 16});
  QuadrantTask task(nullptr);
  o.optimizer.lr = 0.1;
  o.checkpoints = folder;
  size_t at = 0;
  const auto next = [&](Executor&) {
    return std::map<std::string, double>{{"value", values[std::min(at++, values.size() - 1)]}};
  };
  const ir::Graph executed = graph.clone();
  return train({.network = graph,
                .executed = executed,
                .loader = loader,
                .loss = task,
                .validation = {.evaluate = next, .metric = "value"}},
               o);
}

TEST(Trainer, EndsEarlyWhereTheValidationStandsStill) {
  const fs::path folder = scratch_folder("early");
  TrainerOptions o;
  o.epochs = o.checkpoint_interval = 50;
  o.schedule = {.type = ScheduleType::kEarlyStoppingAnnealing,
                .min_lr = 0.001,
                .soft_start_epochs = 0,
                .annealing_epochs = 1,
                .patience_steps = 1};
  ir::Graph graph = small_network(false);
  // No better after epoch 2, so the rate falls in epoch 3; no better after epoch 3, when the fall is just over; the
  // end.
  const TrainResult result = run_with_values(folder, {1}, o, graph);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.run.epochs_done, 4);
  EXPECT_DOUBLE_EQ(result.run.history[1].learning_rate, 0.1);
  EXPECT_NEAR(result.run.history[2].learning_rate, 0.1 * std::pow(0.01, 0.75), 1e-9) << "the last of four steps";
  EXPECT_NEAR(result.run.history[3].learning_rate, 0.001, 1e-9);
  EXPECT_TRUE(fs::exists(folder / "epoch-4")) << "the end is always saved";
  fs::remove_all(folder);
  EXPECT_THROW(
      {
        const auto pictures = quadrants(64, 7);
        data::Loader loader(*pictures, {.batch_size = 16});
        QuadrantTask task(nullptr);
        o.checkpoints = folder;
        const ir::Graph executed = graph.clone();
        train({.network = graph, .executed = executed, .loader = loader, .loss = task, .validation = {}}, o);
      },
      UserError);
}

TEST(Trainer, EndsWithTheWeightsOfTheBestOrOfTheLastEpoch) {
  const fs::path folder = scratch_folder("final");
  for (const FinalModel wanted : {FinalModel::kBest, FinalModel::kLast}) {
    TrainerOptions o;
    o.epochs = 3;
    o.final_model = wanted;
    ir::Graph graph = small_network(false);
    const TrainResult result = run_with_values(folder, {1, 3, 2}, o, graph);
    EXPECT_EQ(result.run.best_epoch, 2);
    const std::string model = onnx::export_bytes(graph, {.quantize_weights = false});
    const auto saved = [&](const fs::path& in) { return read_file(folder / in / "model.onnx"); };
    EXPECT_EQ(model == saved("best"), wanted == FinalModel::kBest);
    EXPECT_EQ(model == saved("epoch-3"), wanted == FinalModel::kLast);
    EXPECT_EQ(saved("best"), saved("epoch-2"));
  }
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, TrainerTest,
    ::testing::Values(Variant{"sgd", "sgd", false, false}, Variant{"adamw_ema", "adamw", false, true},
                      Variant{"qat", "adam", true, false}, Variant{"stateful", "adam", false, false, true},
                      Variant{"stateful_qat_bf16", "adam", true, false, true, Precision::kBFloat16}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace octet::train
