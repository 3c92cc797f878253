#include "app/class_names.h"

#include "base/error.h"
#include "data/class_order.h"
#include "engine/model_info.h"

namespace octet::app {

namespace key = engine::key;

std::vector<std::string> class_names_of(const Metadata& metadata, const std::string& file) {
  try {
    return engine::read_class_names(metadata);
  } catch (const UserError& e) {
    fail(file, ": ", e.what());
  }
}

void keep_class_names(Metadata& metadata, const std::vector<std::string>& names) {
  metadata.erase(key::kOldClasses);
  metadata.erase(key::kClasses);
  if (!data::are_numbers(names)) metadata[key::kClasses] = engine::class_names_text(names);
}

}  // namespace octet::app
