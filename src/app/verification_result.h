// What holding an engine against the graph that it was compiled from has found, and what that proves.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/model_cut.h"
#include "tasks/task.h"

namespace octet::app {

// One quantized tensor. Each is judged by itself: the graph computes it from the engine's own codes of the tensors
// before, so a difference cannot travel.
struct TensorCheck {
  std::string tensor;
  TensorPlace place = TensorPlace::kCompared;
  std::string note;  // where it is not compared: why
  int64_t elements = 0;
  int64_t different = 0;  // codes that differ at all
  int64_t ties = 0;  // of these: by one step, and the graph's value lies on the border between the two codes, or near
                     // it behind an activation on lines (VerifyOptions::border)
  int64_t violations = 0;    // all others: the engine is wrong there
  int64_t largest_step = 0;  // largest difference in codes
};

// One output, as numbers: the engine's beside the graph's, computed in float64 from the engine's own codes of the
// tensors before. What float32 may do to it is measured: how far the reference's float32 result of the same graph,
// which is LibTorch's, or what another order of summation gives (app/plain_reference.cc), is from that.
struct ScoreCheck {
  std::string output;
  int64_t elements = 0;
  double largest_difference = 0;  // between engine and graph; infinite where one alone is not finite
  double float_error = 0;         // largest difference between the graph in float32 and in float64
  double magnitude = 0;           // largest absolute value
  bool discrete = false;          // behind an ArgMax or Floor, where the last bit decides: `different` counts
  int64_t different = 0;
  // Another order of summation errs as much as the reference's; 16 times that, and 8 units of the last place of the
  // largest value for the roundings that both share, are far below one step of a code.
  double tolerance() const { return 16 * float_error + 8 * 1.2e-7 * magnitude; }
};

struct Mismatch {
  int64_t image;
  std::string graph, engine;  // what each says: "class 3 (0.41)", "2 sure objects"
  int64_t different_codes;    // in the whole network, for this image's batch
};

struct Verification {
  bool predicts = false;  // the network is one of the task: its predictions are compared, too
  int64_t images = 0, agree = 0;
  tasks::Distance distance;                      // of the predictions
  tasks::Metrics graph_metrics, engine_metrics;  // empty without annotations
  std::vector<Mismatch> mismatches;
  int64_t tensor_images = 0;  // images whose tensors and scores were compared
  std::vector<TensorCheck> tensors;
  std::vector<ScoreCheck> scores;
  double agreement() const { return images ? static_cast<double>(agree) / static_cast<double>(images) : 0; }
  int64_t violations() const;
  int64_t count(TensorPlace place) const;
  // Empty where the engine computes the model; else one sentence that says what does not hold. The proof is the codes:
  // where each is right or a tie, and the outputs follow from them, the engine computes the model, and on how many of a
  // few images both say the same is chance. `smallest_agreement` of the predictions is asked for where it is given; of
  // discrete outputs, for which there is no other proof, 0.999 unless given, or all elements but one.
  std::string objection(std::optional<double> smallest_agreement = {}) const;
};

}  // namespace octet::app
