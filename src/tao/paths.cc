#include "tao/paths.h"

#include "base/error.h"

namespace octet::tao {

Path resolve(const std::string& key, const Path& base) {
  if (key.empty() || key.front() != '.') return parse_path(key);
  Path path = base;
  for (std::string& step : parse_path(std::string_view(key).substr(1))) path.push_back(std::move(step));
  return path;
}

Path resolve_entry(const std::string& key, const Path& base, const std::string& step) {
  Path path = resolve(key, base);
  OCTET_CHECK(!path.empty() && (path.back() == "*" || path.back() == "[]"), key);
  path.back() = step;
  return path;
}

Path entry_path(const Field& field, const Path& base, const std::string& name) {
  Path path = resolve_entry(field.key(), base, name);
  if (!field.entry_key().empty()) path.push_back(field.entry_key());
  return path;
}

}  // namespace octet::tao
