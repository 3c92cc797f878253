// What an evaluation says beyond its metrics, in terms that need no task to be shown: figures, a table of the classes,
// curves, and the images that went worst.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "vision/box.h"

namespace octet::tasks {

struct MetricInfo {
  std::string name;   // as in Metrics: "top1"
  std::string title;  // for people: "top-1"
  std::string unit;   // "%", or empty
  bool larger_is_better = true;
};

struct Figure {
  MetricInfo info;
  double value = 0;  // NaN: there is nothing that it could be measured on
};

struct CurveLine {
  int label = 0;  // of a class
  std::vector<double> x, y;
};
struct CurveSet {
  std::string name;  // "precision_recall"
  std::string title, x_label, y_label;
  std::vector<CurveLine> lines;
};

// One thing in an image that went well or wrong.
enum class Outcome { kRight, kMissed, kWrong };
struct Mark {
  vision::Object object;  // in pixels of the image
  Outcome outcome = Outcome::kRight;
};
struct ImageRemark {
  int64_t image = 0;  // in the dataset
  std::string text;   // "2 missed, 1 wrong"
  std::vector<Mark> marks;
};

struct Details {
  std::vector<Figure> figures;
  // The columns of the table of classes; the first is that by which classes are compared.
  std::vector<MetricInfo> columns;
  std::vector<std::vector<double>> classes;  // [label][column]; NaN for what a class has nothing of
  // Of a classifier, [label][predicted]: how many images. Empty: there is none.
  std::vector<int64_t> confusion;
  std::vector<CurveSet> curves;
  std::vector<ImageRemark> worst;  // the worst first; none of those where nothing went wrong
};

}  // namespace octet::tasks
