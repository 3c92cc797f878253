#include "app/class_names.h"

#include <set>
#include <sstream>

#include "base/error.h"
#include "data/class_order.h"
#include "onnx/metadata_lines.h"

namespace octet::app {
namespace {

constexpr const char* kKey = "octet.class_names";  // one a line

}  // namespace

std::vector<std::string> class_names_of(const Metadata& metadata, const std::string& file) {
  std::vector<std::string> names;
  const auto entry = metadata.find(kKey);
  if (entry == metadata.end()) return names;
  std::istringstream lines(entry->second);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    names.push_back(onnx::unescape_line(line));
    if (!seen.insert(names.back()).second)
      fail(file, ": its metadata entry ", kKey, " names the class '", names.back(), "' twice");
  }
  return names;
}

void keep_class_names(Metadata& metadata, const std::vector<std::string>& names) {
  metadata.erase(kKey);
  if (data::are_numbers(names)) return;
  std::string lines;
  for (const std::string& name : names) lines += onnx::escape_line(name) + "\n";
  metadata[kKey] = lines;
}

}  // namespace octet::app
