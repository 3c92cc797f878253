// How far apart what two networks give is on the same images, output by output.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "app/model.h"
#include "data/loader.h"

namespace octet::app {

// An image that the two take for different classes.
struct ClassDifference {
  int64_t image = 0;
  int first = 0, second = 0;
  double lead = 0;  // by how much the first network finds its class more probable than the second's
};

struct OutputComparison {
  std::string first, second;  // its name in each network
  int64_t elements = 0, different = 0;
  double signal = 0, second_signal = 0, noise = 0, product = 0;  // sums over all elements
  double largest_difference = 0;                                 // infinite where one alone is not finite
  double magnitude = 0;                                          // largest absolute value of the first

  // A row of scores of classes for each image:
  bool classes = false;
  int64_t images = 0, agree = 0;
  int64_t sure = 0, sure_agree = 0;  // of images on which the first is sure (ComparisonOptions::margin)
  std::vector<ClassDifference> differences;

  double sqnr_db() const;  // of the second as a copy of the first; infinite where nothing differs
  double cosine() const;   // of the angle between both; 1 where both are 0
  double agreement() const;
  double largest_lead() const;  // of `differences`; 0 where there is none
};

struct ComparisonOptions {
  double margin = 0.1;  // an image is sure where the best class is that much more probable than the next
  std::function<void(int64_t done)> progress;
};

struct Comparison {
  int64_t images = 0;
  std::vector<OutputComparison> outputs;
};

// Both on one epoch of the same images, each as its own loader makes its input of them. Outputs are compared with those
// of the same name; where no name is in both networks, and they have as many, in their order. UserError where nothing
// can be compared, an output has another number of elements for an image, or there is no image.
Comparison compare_models(Model& first, data::Loader& first_images, Model& second, data::Loader& second_images,
                          const ComparisonOptions& options);

// One output on some images; of the classes only where `classes` says so.
void compare_values(std::span<const float> first, std::span<const float> second, OutputComparison& sum);
// The scores of one image.
void compare_classes(std::span<const float> first, metrics::ScoreKind first_kind, std::span<const float> second,
                     int64_t image, double margin, OutputComparison& sum);

}  // namespace octet::app
