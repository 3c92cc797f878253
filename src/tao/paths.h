// How the keys of a Message become ways into an experiment.
#pragma once
#include <string>

#include "tao/message.h"
#include "tao/tree.h"

namespace octet::tao {

// Where classes have sections of their own: what such a section leaves open is said by the same key outside of it.
constexpr const char* kClassSections = "target_class_config";

// `key` behind `base` where it begins with a point.
Path resolve(const std::string& key, const Path& base);
// The same for an entry of a map or an item of a list: `step` ("car", "[3]") in the place of the last "*" or "[]".
Path resolve_entry(const std::string& key, const Path& base, const std::string& step);

// That of the value of a scalar in a map.
Path entry_path(const Field& field, const Path& base, const std::string& name);

}  // namespace octet::tao
