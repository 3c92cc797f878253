// One engine file for several sizes of the input ("profiles": batches, image sizes): a plan for each, over one blob of
// constants in which equal weights and tables are there once. The first plan carries the others (Plan::profiles), so
// whoever knows nothing of profiles runs the first.
#pragma once
#include <memory>
#include <vector>

#include "engine/plan.h"

namespace octet::engine {

inline constexpr size_t kMaxProfiles = 64;

// `plans` are complete plans of one network. UserError when two have the same input shapes, or there are too many.
Plan merge_profiles(std::vector<Plan> plans);

// Checks the further profiles as validate() does, and that their inputs and outputs are named as those of the plan.
void validate_profiles(const Plan& plan, const PlanLimits& limits = {});

// Profile `index`, which shares the life of `plan`; 0 is the plan itself. UserError when there is none.
std::shared_ptr<const Plan> profile_of(const std::shared_ptr<const Plan>& plan, int index);

// "1x3x224x224, 4x3x224x224": shapes of the inputs of every profile, for messages.
std::string profile_list(const Plan& plan);

}  // namespace octet::engine
