#include "train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "train/batch_norm_statistics.h"
#include "train/constants.h"
#include "train/diagnosis.h"
#include "train/loss_scaler.h"
#include "train/parameters.h"
#include "train/placed_threads.h"
#include "train/regularizer.h"
#include "train/step.h"

namespace octet::train {
namespace {

std::unique_ptr<LossScaler> make_scaler(const TrainerOptions& options) {
  if (options.cost_scaling.enabled) return std::make_unique<CostScaler>(options.cost_scaling);
  if (options.mixed.loss_scale && !options.mixed.per_loss)
    return std::make_unique<GradScaler>(*options.mixed.loss_scale);
  return nullptr;
}

// UserError unless the checkpoint holds a tensor like `expected` under this name.
void require_entry(const checkpoint::NamedTensors& state, const std::string& key, const at::Tensor& expected) {
  const auto found = state.find(key);
  if (found == state.end()) fail("it holds no '", key, "'");
  const ir::Shape shape(expected.sizes().begin(), expected.sizes().end());
  if (found->second.shape() != shape)
    fail("its '", key, "' has the shape ", ir::shape_string(found->second.shape()), ", the network's has ",
         ir::shape_string(shape));
}

class TrainingRun {
 public:
  TrainingRun(const Training& training, const TrainerOptions& options, TrainListener* listener)
      : graph_(training.network),
        loader_(training.loader),
        validation_(training.validation),
        options_(options),
        communicator_(training.communicator),
        first_(communicator_.rank() == 0),
        listener_(first_ ? listener : nullptr),
        executor_(training.executed, options.executor),
        parameters_(classify_parameters(executor_, options.mixed.master_weights)),
        optimizer_(options.optimizer, parameters_),
        regularizer_(options.regularizer, executor_),
        scaler_(make_scaler(options)),
        loss_(training.loss),
        step_(executor_, optimizer_, loss_, step_options()) {
    if (options_.ema.enable) average_.emplace(options_.ema.decay, parameters_);
    run_.fingerprint = options_.fingerprint;
    run_.ranks = communicator_.size();
    steps_per_epoch_ = loader_.batches_per_epoch() / options_.accumulate;
    lr_scale_ = lr_scale(options_.lr_scaling, static_cast<double>(communicator_.size() * options_.accumulate));
    if (steps_per_epoch_ < 1)
      fail("the ", loader_.dataset().size(), " training images are fewer than one step of ",
           loader_.options().batch_size * communicator_.size() * options_.accumulate);
    if (options_.schedule.type == ScheduleType::kEarlyStoppingAnnealing && !validation_.evaluate)
      fail_usage("the schedule early_stopping_annealing follows the validation; name validation images (data.val)");
  }

  TrainResult operator()() {
    start();
    while (!done())
      if (!epoch()) return {run_, true};
    if (run_.best_epoch > 0 && options_.final_model == FinalModel::kBest) {
      if (first_) executor_.load_from(checkpoint::load_best(options_.checkpoints, run_.best_epoch));
      share_state();
    } else if (average_) {
      swap_average();
    }
    if (options_.batch_norm_images > 0)
      reestimate_batch_norm(executor_, loader_, static_cast<int>(run_.epochs_done), options_.batch_norm_images,
                            communicator_);
    executor_.write_back(graph_);
    return {run_, false};
  }

 private:
  StepOptions step_options() {
    if (options_.mixed.per_loss && !scaler_) part_scalers_.emplace(*options_.mixed.loss_scale);
    return {.clip_grad_norm = options_.clip_grad_norm,
            .communicator = communicator_,
            .scaler = scaler_.get(),
            .part_scalers = part_scalers_ ? &*part_scalers_ : nullptr,
            .reduction = options_.reduction,
            .accumulate = static_cast<int>(options_.accumulate),
            .regularizer = regularizer_.enabled() ? &regularizer_ : nullptr};
  }

  // Of another experiment: refused by resume(), not passed over.
  bool foreign(const checkpoint::Checkpoint& found) const { return found.run.fingerprint != options_.fingerprint; }

  // What the schedule makes of the epochs so far.
  EarlyStopping annealing() const {
    if (options_.schedule.type != ScheduleType::kEarlyStoppingAnnealing) return {};
    std::vector<Measurement> measured;
    for (const checkpoint::EpochRecord& epoch : run_.history)
      if (const auto value = epoch.metrics.find(validation_.metric); value != epoch.metrics.end())
        measured.push_back({epoch.epoch, value->second});
    return early_stopping(options_.schedule, measured, validation_.larger_is_better);
  }

  bool done() const { return run_.epochs_done >= options_.epochs || annealing().stop; }

  // UserError when training cannot go on from there with the bytes of a run that was not interrupted.
  void require_usable(const checkpoint::Checkpoint& found) const {
    if (foreign(found)) return;
    const bool same_ranks = found.run.ranks == communicator_.size();
    if (found.run.epochs_done > options_.epochs || (same_ranks && found.run.batches_done >= steps_per_epoch_))
      fail("it stands after ", found.run.epochs_done, " epochs and ", found.run.batches_done, " batches of ",
           options_.epochs, " and ", steps_per_epoch_);
    if (found.run.best_epoch > 0) checkpoint::require_best(options_.checkpoints);
    for (auto& tensors : {executor_.named_parameters(), executor_.named_buffers()})
      for (const auto& [name, tensor] : tensors) require_entry(found.state, "model/" + name, tensor);
  }

  // Rank 0 reads checkpoints and tells the others, who need no access to its files.
  void start() {
    on_all_ranks(communicator_, [this] {
      if (first_) resume();
    });
    run_ = checkpoint::parse_run_state(communicator_.broadcast(checkpoint::run_state_json(run_)), "rank 0");
    share_state();
    executor_.set_step((run_.epochs_done * steps_per_epoch_ + run_.batches_done) * options_.accumulate);
  }

  // Every rank gets the state of rank 0.
  void share_state() {
    if (communicator_.size() == 1) return;
    const std::string bytes = communicator_.broadcast(first_ ? checkpoint::safetensors_bytes(state()) : "");
    if (!first_) restore(checkpoint::parse_safetensors(bytes, "rank 0"));
  }

  // Where an epoch was left by another number of ranks, it goes on with the step that has the next image; images of a
  // step that was not whole then come again.
  void continue_with_other_ranks() {
    if (run_.ranks == communicator_.size()) return;
    const int64_t steps = std::min(run_.batches_done * run_.ranks / communicator_.size(), steps_per_epoch_);
    const double kept = static_cast<double>(steps) / static_cast<double>(std::max<int64_t>(run_.batches_done, 1));
    run_.loss_sum *= kept;
    run_.skipped = static_cast<int64_t>(static_cast<double>(run_.skipped) * kept);
    run_.batches_done = steps;
    run_.ranks = communicator_.size();
  }

  void resume() {
    std::optional<checkpoint::Checkpoint> found = checkpoint::load_latest_checkpoint(
        options_.checkpoints, [this](const checkpoint::Checkpoint& each) { require_usable(each); });
    if (!found) return;
    if (foreign(*found))
      fail_usage(
          options_.checkpoints.string(),
          ": holds checkpoints of another experiment (spec, model, images, threads or precision); name another results "
          "directory, or give --force to start anew");
    run_ = found->run;
    checkpoint::prune_checkpoints(options_.checkpoints, run_, options_.keep_checkpoints);
    restore(found->state);
    continue_with_other_ranks();
    if (listener_) listener_->on_resume(run_);
  }

  // Everything that later steps depend on, but for the position.
  checkpoint::NamedTensors state() const {
    checkpoint::NamedTensors state;
    for (auto& tensors : {executor_.named_parameters(), executor_.named_buffers()})
      for (const auto& [name, tensor] : tensors) state["model/" + name] = to_constant(tensor);
    optimizer_.save(state);
    loss_.save(state);
    if (scaler_) scaler_->save(state);
    if (part_scalers_) part_scalers_->save(state);
    if (average_) average_->save(state);
    return state;
  }

  void restore(const checkpoint::NamedTensors& state) {
    at::NoGradGuard no_grad;
    for (auto& tensors : {executor_.named_parameters(), executor_.named_buffers()})
      for (const auto& [name, tensor] : tensors) {
        at::Tensor target = tensor;
        target.copy_(to_torch(state.at("model/" + name)));
      }
    optimizer_.load(state);
    loss_.load(state);
    if (scaler_) scaler_->load(state);
    if (part_scalers_) part_scalers_->load(state);
    if (average_) average_->load(state);
  }

  void save() {
    if (!first_) return;
    const checkpoint::Checkpoint saved{run_, state()};
    ir::Graph model = graph_.clone();
    executor_.write_back(model);
    checkpoint::save_checkpoint(options_.checkpoints, saved, model);
    checkpoint::prune_checkpoints(options_.checkpoints, run_, options_.keep_checkpoints);
  }

  void save_best() {
    if (!first_) return;
    ir::Graph model = graph_.clone();
    executor_.write_back(model);
    checkpoint::save_best(options_.checkpoints, run_.best_epoch, validation_.metric, run_.best_metric, model);
  }

  // Whether it holds on one rank at least. Returns when all have asked.
  bool on_any_rank(bool here) {
    at::Tensor flag = at::scalar_tensor(here ? 1.0 : 0.0);  // on the host: asked every step, and waits for no GPU
    communicator_.all_reduce({&flag, 1}, Reduce::kMax);
    return flag.item<double>() != 0;
  }

  bool stop_requested() { return on_any_rank(options_.stop_requested && options_.stop_requested()); }

  // By the epoch alone, so that a run that goes on does the same.
  void freeze_what_is_due() {
    const auto due = [&](int64_t after) { return after >= 0 && run_.epochs_done >= after; };
    executor_.set_batch_norm_frozen(due(options_.freeze_batch_norm_after));
    if (due(options_.freeze_ranges_after)) executor_.set_averaging_constants(0, 0);
  }

  // One epoch, or what is left of it. False when a stop was asked for.
  bool epoch() {
    const auto start = std::chrono::steady_clock::now();
    const int64_t total = options_.epochs * steps_per_epoch_;
    const std::optional<int64_t> annealing_from = annealing().annealing_from;
    checkpoint::EpochRecord record;
    record.epoch = run_.epochs_done + 1;
    if (listener_) listener_->on_epoch_start(record.epoch, run_.batches_done, steps_per_epoch_);
    freeze_what_is_due();
    loader_.start_epoch(static_cast<int>(run_.epochs_done), run_.batches_done * options_.accumulate);
    std::optional<PlacedThreads> placed(std::in_place, options_.executor.device == "cpu");
    while (run_.batches_done < steps_per_epoch_) {
      for (int64_t i = 1; i < options_.accumulate; ++i)
        if (const std::optional<data::Batch> batch = loader_.next()) step_.accumulate(*batch);
      std::optional<data::Batch> batch = loader_.next();
      if (!batch) break;
      const int64_t step = run_.epochs_done * steps_per_epoch_ + run_.batches_done;
      const double factor =
          lr_scale_ * run_.back_off *
          schedule_factor(
              options_.schedule, options_.optimizer.lr,
              {.step = step, .total = total, .steps_per_epoch = steps_per_epoch_, .annealing_from = annealing_from});
      record.learning_rate = options_.optimizer.lr * factor;
      keep_buffers();
      const StepLoss loss = step_(*batch, factor);
      ++run_.batches_done;
      if (!std::isfinite(loss.total)) {
        pass_over(loss, *batch, record.epoch);
      } else {
        if (average_ && loss.updated) average_->update();
        run_.loss_sum += loss.total;
        skipped_in_a_row_ = 0;
      }
      if (listener_)
        listener_->on_step({.epoch = record.epoch,
                            .step = run_.batches_done,
                            .steps = steps_per_epoch_,
                            .loss = loss.total,
                            .loss_parts = loss.parts,
                            .learning_rate = record.learning_rate,
                            .images = batch->size * communicator_.size() * options_.accumulate,
                            .loss_factor = scaler_         ? scaler_->factor()
                                           : part_scalers_ ? part_scalers_->least_factor()
                                                           : 1});
      if (stop_requested() && run_.batches_done < steps_per_epoch_) {
        save();
        return false;
      }
    }
    placed.reset();
    loss_.end_epoch(communicator_);
    record.loss = run_.loss_sum / static_cast<double>(std::max<int64_t>(run_.batches_done - run_.skipped, 1));
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++run_.epochs_done;
    run_.batches_done = 0;
    run_.skipped = 0;
    run_.loss_sum = 0;
    if (validation_.evaluate &&
        (run_.epochs_done == options_.epochs || run_.epochs_done % options_.evaluate_interval == 0))
      evaluate(record);
    run_.history.push_back(record);
    const bool last = done();
    if (last || run_.epochs_done % options_.checkpoint_interval == 0) save();
    if (listener_) listener_->on_epoch(record);
    if (stop_requested() && !last) {
      if (run_.epochs_done % options_.checkpoint_interval != 0) save();
      return false;
    }
    return true;
  }

  // Running statistics and scales, which a batch that is passed over must not move.
  void keep_buffers() {
    if (options_.non_finite.policy == NonFinitePolicy::kStop) return;
    buffers_.clear();
    for (const auto& [name, buffer] : executor_.named_buffers()) buffers_.push_back(buffer.clone());
  }

  // A step whose loss is not finite, and which updated nothing: the training goes on without it, or stops.
  void pass_over(const StepLoss& loss, const data::Batch& batch, int64_t epoch) {
    ++run_.skipped;
    ++skipped_in_a_row_;
    const NonFiniteOptions& options = options_.non_finite;
    const bool stops = options.policy == NonFinitePolicy::kStop || skipped_in_a_row_ > options.max_in_a_row;
    const std::string what = what_is_not_finite(loss, batch, epoch);
    if (stops && !first_) throw UserError("", ExitCode::kFailed);  // rank 0 tells
    if (stops)
      fail(what, skipped_in_a_row_ > 1 ? str(", as in ", skipped_in_a_row_ - 1, " steps before it") : "",
           "; lower the learning rate, or set train.clip_grad_norm");
    const bool back_off = options.policy == NonFinitePolicy::kBackOff;
    if (back_off) run_.back_off *= options.back_off_factor;
    if (first_)
      log_warning(what, "; the step is left out",
                  back_off ? str(", and the learning rate is ", run_.back_off, " times what it was") : "");
    const at::NoGradGuard no_grad;
    size_t i = 0;
    for (const auto& [name, buffer] : executor_.named_buffers()) at::Tensor(buffer).copy_(buffers_[i++]);
  }

  std::string what_is_not_finite(const StepLoss& loss, const data::Batch& batch, int64_t epoch) {
    std::string parts;
    if (loss.parts.size() > 1)
      for (const auto& [name, value] : loss.parts) parts += str(parts.empty() ? " (" : ", ", name, " ", value);
    const std::string first = first_not_finite(executor_, batch, communicator_);
    return str("the loss became ", loss.total, parts, parts.empty() ? "" : ")", " in epoch ", epoch, ", batch ",
               run_.batches_done,
               first.empty() ? "; every tensor of the network is finite, and the loss itself overflowed"
                             : "; the first tensor that is not finite is " + first);
  }

  // The network has the average of its weights, or its own again.
  void swap_average() {
    average_->swap();
    executor_.parameters_changed();
  }

  // With a weight average, it is what is measured and kept as the best.
  void evaluate(checkpoint::EpochRecord& record) {
    if (average_) swap_average();
    record.metrics = validation_.evaluate(executor_);
    const double metric = record.metrics.at(validation_.metric);
    const bool first = run_.best_epoch == 0 && !std::isnan(metric);
    if (first || (validation_.larger_is_better ? metric > run_.best_metric : metric < run_.best_metric)) {
      run_.best_metric = metric;
      run_.best_epoch = record.epoch;
      save_best();
    }
    if (average_) swap_average();
  }

  ir::Graph& graph_;
  data::Loader& loader_;
  const Validation& validation_;
  const TrainerOptions& options_;
  Communicator& communicator_;
  const bool first_;  // of the ranks
  TrainListener* listener_;
  Executor executor_;
  const std::vector<NamedParameter> parameters_;
  Optimizer optimizer_;
  Regularizer regularizer_;
  std::unique_ptr<LossScaler> scaler_;
  std::optional<PartScalers> part_scalers_;
  Loss& loss_;
  TrainStep step_;
  std::optional<WeightAverage> average_;
  checkpoint::RunState run_;
  int64_t steps_per_epoch_ = 0;
  double lr_scale_ = 1;
  std::vector<at::Tensor> buffers_;
  int64_t skipped_in_a_row_ = 0;
};

}  // namespace

TrainResult train(const Training& training, const TrainerOptions& options, TrainListener* listener) {
  return TrainingRun(training, options, listener)();
}

}  // namespace octet::train
