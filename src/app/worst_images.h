// The images that a model was worst at, as the report shows them.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "data/dataset.h"
#include "report/html_report.h"

namespace octet::app {

// Of a result as evaluation_record.h has it, with what was found rightly (green), wrongly (red) and not at all (blue).
// `images` is what was evaluated; an image that it has under another name, or that cannot be read, is left out.
std::vector<report::Picture> worst_pictures(const nlohmann::ordered_json& evaluation, const data::Dataset& images);

}  // namespace octet::app
