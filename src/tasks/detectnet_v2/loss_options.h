// What DetectNet_v2 descends, without LibTorch.
#pragma once
#include "schema/schema.h"
#include "tasks/by_class.h"
#include "tasks/detectnet_v2/loss_mask.h"
#include "tasks/detectnet_v2/rasterizer.h"

namespace octet::tasks::detectnet_v2 {

// Of one part of the loss, beside the other.
struct ObjectiveOptions {
  double initial_weight = 1;
  double weight_target = 1;  // the share of the loss that autoweighting gives it, beside the other's
};

void describe(schema::Section& s, ObjectiveOptions& objective);

// Of one class; names as in TAO's cost_function_config.
struct ClassCost {
  double class_weight = 1;                   // beside those of the other classes: they are made to sum up to 1
  double coverage_foreground_weight = 0.05;  // of cells more than half covered; the others weigh 1 - it
  ObjectiveOptions coverage, bbox = {.initial_weight = 10, .weight_target = 10};
};
void describe(schema::Section& s, ClassCost& cost);

// At the end of an epoch the weights of a class's two objectives become weight_target / the sum of its costs over the
// epoch and all ranks, divided by the sum of both, and then not less and not more than these.
struct Autoweighting {
  bool enabled = false;
  double min_objective_weight = 1e-4, max_objective_weight = 0.9999;
};

struct LossOptions {
  ByClass<ClassCost> costs;
  Autoweighting autoweighting;
  RasterizerOptions rasterizer;
  LossMaskOptions loss_mask;
  LossMask mask;  // of loss_mask, from name_classes on

  // Of Task::name_classes.
  void name_classes(const std::vector<std::string>& names);
};
// The section cost_function; rasterizer and mask have their own.
void describe_cost(schema::Section& s, LossOptions& loss);

}  // namespace octet::tasks::detectnet_v2
