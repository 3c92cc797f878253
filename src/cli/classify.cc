#include <chrono>

#include "app/class_names.h"
#include "base/error.h"
#include "cli/classifier.h"
#include "report/progress.h"

namespace octet::cli {
void Classifier::read_class_names(const std::map<std::string, std::string>& metadata, const std::string& file) {
  class_names_ = app::class_names_of(metadata, file);
  if (static_cast<int64_t>(class_names_.size()) > classes())
    fail_usage(file, ": names ", class_names_.size(), " classes, but has ", classes(), " scores");
}

Classification classify(Classifier& classifier, data::Loader& loader, int top_k, const std::string& label) {
  Classification out{metrics::TopKAccumulator(top_k), 0, {}, {}, {}, 0};
  report::Progress progress({.label = label, .total = loader.images_per_epoch()});
  const auto start = std::chrono::steady_clock::now();
  int64_t labeled = 0;
  loader.start_epoch(0);
  while (std::optional<data::Batch> batch = loader.next()) {
    const std::vector<float> scores = classifier.scores(*batch);
    const auto classes = static_cast<size_t>(classifier.classes());
    OCTET_CHECK(scores.size() == classes * static_cast<size_t>(batch->size));
    for (size_t i = 0; i < static_cast<size_t>(batch->size); ++i) {
      const std::span<const float> row(scores.data() + i * classes, classes);
      out.predictions.push_back(metrics::top_1(row));
      const int64_t expected = batch->truth[i].label;
      if (expected < 0) continue;
      if (expected >= classifier.classes())
        fail("image ", loader.dataset().name(batch->indices[i]), " has the label ", expected, ", the model has ",
             classes, " classes");
      out.accuracy.add(row, {&expected, 1});
      out.loss -= metrics::log_probability(row, classifier.score_kind(), static_cast<int>(expected));
      ++labeled;
    }
    out.scores.insert(out.scores.end(), scores.begin(), scores.end());
    out.indices.insert(out.indices.end(), batch->indices.begin(), batch->indices.end());
    progress.update(static_cast<int64_t>(out.predictions.size()));
  }
  progress.finish();
  if (out.predictions.empty()) fail("there is no image to evaluate");
  if (labeled > 0) out.loss /= static_cast<double>(labeled);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace octet::cli
