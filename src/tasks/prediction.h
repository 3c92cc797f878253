// What a network says of one image, in the terms of its task.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "vision/box.h"

namespace octet::tasks {

struct ClassScores {
  std::vector<float> probabilities;  // of each class, 0 .. 1
};
using Objects = std::vector<vision::Object>;  // in pixels of the network's input

using Prediction = std::variant<ClassScores, Objects>;

// Whether two runs of one network say the same of an image: the same best class; the same sure objects, where an object
// is sure from a score of 0.6 and the same as one of its class, however sure, of an IoU of at least 0.5. That the
// numbers behind them are the same is what the codes and the outputs are compared for.
bool agree(const Prediction& a, const Prediction& b);

// How far two runs of one network are apart in numbers.
struct Distance {
  static constexpr double kNearBox = 0.5, kNearScore = 0.01;  // pixels; score or probability
  bool of_boxes = false;                                      // of objects, not of classes
  int64_t compared = 0;                                       // images of classes; objects that are sure in either run
  int64_t unmatched = 0;  // of the objects: without one of the same class and an IoU of at least 0.5 in the other run
  int64_t near = 0;       // of the compared: no border and no score is farther apart than that
  double box = 0;         // largest distance of two borders of matched objects, pixels
  // Largest difference of the scores of matched objects, or of probabilities; of scores above 1, which are sums over
  // the cells of an object, as a share of the greater one.
  double score = 0;
  void merge(const Distance& other);
};
Distance distance(const Prediction& a, const Prediction& b);

// For messages: "class 3 (0.41)", "2 sure objects".
std::string summary(const Prediction& prediction);

}  // namespace octet::tasks
