#include "tasks/detectnet_v2/loss_options.h"

namespace octet::tasks::detectnet_v2 {

using schema::Section;

void describe(Section& s, ObjectiveOptions& objective) {
  s.field("initial_weight", objective.initial_weight).range(0, 1e6).help("Beside that of the other objective.");
  s.field("weight_target", objective.weight_target)
      .range(0, 1e6)
      .help("enable_autoweighting: its share of the loss, beside the other objective's.");
}

void describe(Section& s, ClassCost& cost) {
  s.field("class_weight", cost.class_weight).range(0, 1e6).help("Of a class beside the others.");
  s.field("coverage_foreground_weight", cost.coverage_foreground_weight)
      .range(0, 1)
      .help("Weight of the cells more than half covered; the others have 1 - it.");
  s.section("coverage", cost.coverage).known_elsewhere_as({"cov"}).help("Cross-entropy of the coverage.");
  s.section("bbox", cost.bbox).help("Distance of the borders.");
  s.rule("bbox", [&cost]() -> std::string {
    const bool any = cost.bbox.initial_weight + cost.coverage.initial_weight > 0;
    return any ? "" : "and coverage have an initial_weight of 0; nothing would be learned";
  });
}

void describe_cost(Section& s, LossOptions& loss) {
  describe_by_class(s, loss.costs);
  s.field("enable_autoweighting", loss.autoweighting.enabled)
      .help(
          "After every epoch, weigh the two objectives of a class so that their shares of the loss are as their "
          "weight_target.");
  s.field("min_objective_weight", loss.autoweighting.min_objective_weight)
      .range(0, 1)
      .help("enable_autoweighting: least weight of an objective.");
  s.field("max_objective_weight", loss.autoweighting.max_objective_weight)
      .range(0, 1)
      .help("enable_autoweighting: greatest weight of an objective.");
  s.rule("min_objective_weight", [&loss]() -> std::string {
    const bool fit = loss.autoweighting.min_objective_weight <= loss.autoweighting.max_objective_weight;
    return fit ? "" : "must not be more than max_objective_weight";
  });
}

void LossOptions::name_classes(const std::vector<std::string>& names) {
  costs.resolve(names, "detectnet_v2.cost_function.target_class_config");
  rasterizer.classes.resolve(names, "detectnet_v2.bbox_rasterizer.target_class_config");
  mask = LossMask(loss_mask, names);
}

}  // namespace octet::tasks::detectnet_v2
