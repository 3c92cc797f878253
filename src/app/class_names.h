// The names of a model's classes: an entry of the metadata of ONNX and engine files, which every command hands on.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace octet::app {

using Metadata = std::map<std::string, std::string>;

// Names, one for each score in order, also as other programs write them (engine/model_info.h); empty where the model
// has none. UserError naming `file` for an entry that holds something else.
std::vector<std::string> class_names_of(const Metadata& metadata, const std::string& file);

// Nothing is kept where the names say no more than the numbers of the classes.
void keep_class_names(Metadata& metadata, const std::vector<std::string>& names);

}  // namespace octet::app
