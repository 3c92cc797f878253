#include "tasks/detectnet_v2/tao_classes.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/nearest.h"
#include "tao/paths.h"
#include "tao/tree.h"

namespace octet::tasks::detectnet_v2 {
namespace {

using schema::Entry;
using schema::Node;
using tao::Tree;

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Labels that are mapped to no class are dropped, so a class to which none is mapped has no objects.
void require_labels(const Node& classes, const Node& mapping) {
  std::vector<std::string> targets;
  for (const Entry& entry : mapping.entries) targets.push_back(entry.value.text);
  for (const Node& each : classes.items)
    if (std::find(targets.begin(), targets.end(), each.text) == targets.end())
      fail_usage(each.location, ": the class '", each.text,
                 "' of cost_function_config is the value of no target_class_mapping, so no object would have it",
                 did_you_mean(each.text, targets));
}

void read(const Node& file, Tree& experiment, std::vector<tao::UnusedField>& unused) {
  const bool inference = file.find("bbox_handler_config") != nullptr;
  const char *const home = inference ? "inferencer_config" : "cost_function_config", *const postprocessing =
                                                                                         inference
                                                                                             ? "bbox_handler_config"
                                                                                             : "postprocessing_config";
  const Node* list = experiment.find(tao::parse_path("data.target_classes"));
  if (!list) return;
  const Node classes = *list;
  if (const Node* mapping = experiment.find(tao::parse_path("data.target_class_mapping")))
    require_labels(classes, *mapping);
  for (const auto& [block, key] : {std::pair("bbox_rasterizer_config", "detectnet_v2.bbox_rasterizer"),
                                   std::pair(postprocessing, "detectnet_v2.postprocessing"),
                                   std::pair("evaluation_config", "detectnet_v2.evaluation")}) {
    tao::Path section = tao::parse_path(key);
    section.emplace_back(tao::kClassSections);
    const Node* entries = experiment.find(section);
    if (!entries) continue;
    for (const Entry& entry : std::vector<Entry>(entries->entries)) {
      const auto is = [&](const Node& each) { return each.text == entry.key; };
      const auto looks_like = [&](const Node& each) { return lower_case(each.text) == lower_case(entry.key); };
      if (std::any_of(classes.items.begin(), classes.items.end(), is)) continue;
      if (const auto it = std::find_if(classes.items.begin(), classes.items.end(), looks_like);
          it != classes.items.end())
        fail_usage(entry.location, ": '", block, "' names the class '", entry.key, "', which ", home, " calls '",
                   it->text, "'; names match exactly");
      unused.push_back({entry.location, str(block, "{", entry.key, "}"), str(home, " has no such class")});
      tao::Path path = section;
      path.push_back(entry.key);
      experiment.erase(path);
    }
  }
}

}  // namespace

tao::Hook check_classes() {
  return {.read = read};
}

}  // namespace octet::tasks::detectnet_v2
