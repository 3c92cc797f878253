// The plan section of an engine file: everything of a Plan but its constants, as JSON.
#pragma once
#include <string>
#include <string_view>

#include "engine/plan.h"

namespace octet::engine {

std::string plan_to_json(const Plan& plan);
// UserError for text that is not such a plan. The result still has to pass validate().
Plan plan_from_json(std::string_view text);

}  // namespace octet::engine
