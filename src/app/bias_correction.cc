#include "app/bias_correction.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "app/watched_plan.h"
#include "base/cpu_features.h"
#include "base/log.h"
#include "base/parallel.h"
#include "engine/executor.h"
#include "passes/pipelines.h"
#include "passes/shift_biases.h"
#include "report/progress.h"
#include "tasks/image_graph.h"

namespace octet::app {
namespace {

// Where the elements of a channel lie in a buffer.
struct Channels {
  int64_t images = 1, count = 1, places = 1;
  bool last = false;  // behind the places

  explicit Channels(const engine::Buffer& buffer) : last(buffer.layout == engine::Layout::kFloatNhwc) {
    images = buffer.shape.at(0), count = buffer.shape.at(1);
    for (size_t axis = 2; axis < buffer.shape.size(); ++axis) places *= buffer.shape[axis];
  }

  // work(channel, value) for every element of an image.
  template <class Value, class Work>
  void visit(Value* at, const Work& work) const {
    if (last) {
      for (int64_t p = 0; p < places; ++p)
        for (int64_t c = 0; c < count; ++c) work(static_cast<size_t>(c), *at++);
    } else {
      for (int64_t c = 0; c < count; ++c)
        for (int64_t p = 0; p < places; ++p) work(static_cast<size_t>(c), *at++);
    }
  }

  // Over the first `counted` images. Sums of an image are added in the order of the images, however many threads there
  // are.
  std::vector<double> means(std::span<const float> values, int64_t counted, int threads) const {
    std::vector<std::vector<double>> sums(static_cast<size_t>(counted));
    parallel_for(counted, threads, [&](int64_t n) {
      std::vector<double> sum(static_cast<size_t>(count), 0.0);
      visit(values.data() + n * count * places, [&](size_t c, float v) { sum[c] += v; });
      sums[static_cast<size_t>(n)] = std::move(sum);
    });
    std::vector<double> out(static_cast<size_t>(count), 0.0);
    for (const std::vector<double>& sum : sums)
      for (size_t c = 0; c < out.size(); ++c) out[c] += sum[c];
    for (double& mean : out) mean /= static_cast<double>(counted * places);
    return out;
  }

  void add(std::span<float> values, const std::vector<double>& shifts, int threads) const {
    const std::vector<float> rounded(shifts.begin(), shifts.end());
    parallel_for(images, threads, [&](int64_t n) {
      visit(values.data() + n * count * places, [&](size_t c, float& v) { v += rounded[c]; });
    });
  }
};

class Corrector {
 public:
  // `of_float`: as far as it is known; the rest is added.
  Corrector(const ir::Graph& graph, const data::Loader& loader, int threads, FloatMeans& of_float)
      : graph_(graph), image_(loader.image_shape()), threads_(threads), of_float_(of_float) {
    for (const ir::Node* node : passes::nodes_to_correct(graph)) {
      nodes_.push_back(node->name);
      values_.push_back(node->output()->name);
    }
    if (values_.empty()) return;
    input_ = tasks::image_input(tasks::image_graph(graph));
    data::require_fit(input_, image_.channels, image_.height, image_.width);
    if (of_float_.together == 0) decide_how_many_together();
    quantized_ = watch(graph, values_, /*quantized=*/true, shape_of(of_float_.together));
    run_quantized_ = executor_of(quantized_, threads);
    for (size_t i = 0; i < nodes_.size(); ++i)
      sums_.emplace_back(static_cast<size_t>(channels_of(quantized_, i).count), 0.0);
  }

  bool has_work() const { return !nodes_.empty(); }

  // The first `most` images of the batch.
  void add(const data::Batch& batch, int64_t most) {
    const int64_t elements = image_.channels * image_.height * image_.width;
    for (int64_t i = 0; i < std::min(batch.size, most); ++i) {
      const float* image = batch.images.data() + i * elements;
      waiting_.insert(waiting_.end(), image, image + elements);
      if (std::ssize(waiting_) == of_float_.together * elements) run(of_float_.together);
    }
  }

  BiasCorrections result() {
    const auto elements = static_cast<size_t>(image_.channels * image_.height * image_.width);
    if (const size_t left = waiting_.size(); left > 0) {
      // They are repeated, as the plan takes that many.
      while (waiting_.size() < static_cast<size_t>(of_float_.together) * elements)
        waiting_.push_back(waiting_[waiting_.size() - left]);
      run(static_cast<int64_t>(left / elements));
    }
    BiasCorrections out{.shifts = {}, .images = images_};
    for (size_t i = 0; i < nodes_.size(); ++i) {
      std::vector<double>& shift = out.shifts[nodes_[i]] = sums_[i];
      for (double& s : shift) s /= static_cast<double>(std::max<int64_t>(1, images_));
    }
    return out;
  }

 private:
  // Images that run together where the network takes any number: corrections of single images also make up for what
  // only these images have. Fewer where their tensors take more memory than this.
  static constexpr int64_t kTogether = 16, kArenaBytes = int64_t{256} << 20;

  static std::unique_ptr<engine::Executor> executor_of(const WatchedPlan& network, int threads) {
    return std::make_unique<engine::Executor>(
        network.prepared,
        engine::ExecutorOptions{.threads = threads, .team = {}, .row_bands = engine::RowBandOptions{}});
  }

  static Channels channels_of(const WatchedPlan& network, size_t i) {
    return Channels(network.plan->buffers[static_cast<size_t>(network.buffers[i])]);
  }

  std::vector<int64_t> shape_of(int64_t images) const {
    return input_.shape(images, image_.channels, image_.height, image_.width);
  }

  void decide_how_many_together() {
    int64_t& together = of_float_.together;
    together = std::max<int64_t>(1, input_.batch);
    whole_ = watch(graph_, values_, /*quantized=*/false, shape_of(together));
    if (input_.batch > 0) return;
    together = std::clamp<int64_t>(kArenaBytes / std::max<int64_t>(1, whole_.plan->arena_bytes), 1, kTogether);
    if (together > 1) whole_ = {};
  }

  // Of each node, of each channel, in a run of what is waiting.
  std::vector<std::vector<double>> float_means(int64_t images) {
    if (!whole_.plan) whole_ = watch(graph_, values_, /*quantized=*/false, shape_of(of_float_.together));
    if (!run_whole_) run_whole_ = executor_of(whole_, threads_);
    const float* pixels = waiting_.data();
    std::vector<std::vector<double>> out(nodes_.size());
    run_whole_->run_and_show(&pixels, nullptr, whole_.buffers, [&](size_t i, std::span<float> values) {
      out[i] = channels_of(whole_, i).means(values, images, threads_);
    });
    return out;
  }

  // What is waiting, of which the first `images` count.
  void run(int64_t images) {
    if (runs_ == of_float_.runs.size()) of_float_.runs.push_back(float_means(images));
    std::vector<std::vector<double>> missing = of_float_.runs[runs_++];
    const float* pixels = waiting_.data();
    run_quantized_->run_and_show(&pixels, nullptr, quantized_.buffers, [&](size_t i, std::span<float> values) {
      const Channels channels = channels_of(quantized_, i);
      const std::vector<double> found = channels.means(values, images, threads_);
      for (size_t c = 0; c < found.size(); ++c) {
        missing[i][c] -= found[c];
        sums_[i][c] += missing[i][c] * static_cast<double>(images);
      }
      channels.add(values, missing[i], threads_);
    });
    waiting_.clear();
    images_ += images;
  }

  const ir::Graph& graph_;
  data::ImageShape image_;
  data::NetworkInput input_;
  int threads_;
  FloatMeans& of_float_;
  size_t runs_ = 0;
  int64_t images_ = 0;
  std::vector<std::string> nodes_, values_;
  WatchedPlan whole_, quantized_;  // the float network is built where something is not known of it
  std::unique_ptr<engine::Executor> run_whole_, run_quantized_;
  std::vector<float> waiting_;             // images of the next run
  std::vector<std::vector<double>> sums_;  // of each node
};

}  // namespace

BiasCorrections bias_corrections(const ir::Graph& graph, data::Loader& loader, const BiasCorrectionOptions& options) {
  FloatMeans unknown;
  Corrector corrector(graph, loader, options.threads > 0 ? options.threads : available_cpus(),
                      options.of_float ? *options.of_float : unknown);
  if (!corrector.has_work()) return {};
  int64_t images = 0;
  loader.start_epoch(0);
  while (const std::optional<data::Batch> batch = loader.next()) {
    const int64_t left = options.most_images > 0 ? options.most_images - images : batch->size;
    if (left <= 0) break;
    corrector.add(*batch, left);
    images += std::min(left, batch->size);
    if (options.progress) options.progress(images);
  }
  return corrector.result();
}

void apply_corrections(ir::Graph& graph, const std::map<std::string, std::vector<double>>& shifts) {
  passes::shift_biases(graph, shifts);
  passes::run_pipeline(graph, {passes::find_pass("snap_biases")});
}

void correct_biases(ir::Graph& graph, data::Loader& loader) {
  report::Progress progress({.label = "bias correction", .total = loader.images_per_epoch()});
  const BiasCorrections found =
      bias_corrections(graph, loader, {.progress = [&](int64_t done) { progress.update(done); }});
  progress.finish();
  apply_corrections(graph, found.shifts);
  log_info("corrected the biases of ", found.shifts.size(), " nodes");
}

}  // namespace octet::app
