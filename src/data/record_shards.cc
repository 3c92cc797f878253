#include "data/record_shards.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <regex>
#include <set>

#include "base/error.h"
#include "schema/schema.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostShards = 100'000;
constexpr size_t kShown = 5;  // names in a message

std::string some_lines_of(const std::vector<std::string>& names) {
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<ptrdiff_t>(std::min(names.size(), kShown)));
  return schema::join(shown, ", ") + (names.size() > kShown ? str(" and ", names.size() - kShown, " more") : "");
}

bool is_pattern(const std::string& name) {
  return name.find_first_of("*?") != std::string::npos;
}

// A file whose name has no number, as train.tfrecord.
std::optional<std::string> whole_set_name(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending != ".tfrecord" && ending != ".tfrecords") return std::nullopt;
  return file.stem().string();
}

// The files of a folder by set: its name, and the files of the set with that number of shards and that ending.
using Sets = std::map<std::string, std::map<std::pair<int64_t, std::string>, std::vector<std::string>>>;

Sets sets_in(const fs::path& folder, const std::string& pattern) {
  Sets out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || !fits_pattern(name, pattern) || !entry.is_regular_file()) continue;
    if (const auto shard = shard_name(name))
      out[shard->set][{shard->shards, shard->ending}].push_back(name);
    else if (const auto whole = whole_set_name(entry.path()))
      out[*whole][{0, ""}].push_back(name);
    else if (is_pattern(pattern) && pattern != "*")
      out[name][{0, ""}].push_back(name);  // asked for, whatever it is called
  }
  return out;
}

// UserError where shards are missing that fit the pattern, too.
void require_whole(const fs::path& folder, const std::string& pattern, const std::vector<std::string>& files) {
  const std::optional<ShardName> first = shard_name(files.at(0));
  if (!first) return;
  const std::set<std::string> there(files.begin(), files.end());
  std::vector<std::string> missing;
  ShardName name = *first;
  for (name.shard = 0; name.shard < name.shards; ++name.shard)
    if (const std::string file = shard_file_name(name); !there.contains(file) && fits_pattern(file, pattern))
      missing.push_back(file);
  require(missing.empty(), folder.string(), ": ", missing.size(), " of the ", name.shards, " shards of '", name.set,
          "' ", missing.size() == 1 ? "is" : "are", " missing: ", some_lines_of(missing),
          "; a path that names a file, or a pattern like ", first->set, "-0000?-of-*, takes a part of them");
}

// Of a folder of which `set`, or the only one, is wanted.
void keep_one_set(Sets& sets, const fs::path& folder, const std::string& set) {
  std::vector<std::string> names;
  for (const auto& [name, kinds] : sets) names.push_back(name);
  if (set.empty() && names.size() > 1)
    fail_usage(folder.string(), ": holds the sets ", some_lines_of(names), "; name one of them as `split`");
  if (!set.empty()) {
    require(sets.contains(set), folder.string(), ": has no files of the set '", set, "', as ", set,
            "-00000-of-01024; it has the sets ", some_lines_of(names));
    std::erase_if(sets, [&](const auto& entry) { return entry.first != set; });
  }
  const auto& kinds = sets.begin()->second;
  if (kinds.size() > 1)
    fail_usage(folder.string(), ": holds '", sets.begin()->first, "' more than once, as ",
               kinds.begin()->second.front(), " and ", std::next(kinds.begin())->second.front(),
               "; name those that are meant by a pattern as `path`");
}

std::vector<fs::path> find(const fs::path& path, const std::string& set) {
  if (fs::is_regular_file(path)) return {path};
  const bool folder = fs::is_directory(path);
  const fs::path root = folder ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string pattern = folder ? "*" : path.filename().string();
  require((folder || is_pattern(pattern)) && fs::is_directory(root), path.string(), ": no such file or directory");
  if (!folder && !set.empty()) fail_usage(path.string(), ": is a pattern; `split` chooses among the sets of a folder");
  Sets sets = sets_in(root, pattern);
  require(!sets.empty(), path.string(), folder ? ": has no TFRecord files" : ": there is no such file",
          "; they are called like train-00000-of-01024 or train.tfrecord");
  if (folder) keep_one_set(sets, root, set);
  std::vector<fs::path> files;
  for (auto& [name, kinds] : sets)
    for (auto& [kind, members] : kinds) {
      require_whole(root, pattern, members);
      for (const std::string& file : members) files.push_back(root / file);
    }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool fits_pattern(std::string_view text, std::string_view pattern) {
  size_t t = 0, p = 0, star = std::string_view::npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

std::optional<ShardName> shard_name(const std::string& file_name) {
  static const std::regex kName("(.+)-([0-9]{5,6})-of-([0-9]{5,6})(\\.[^-]*)?");
  std::smatch match;
  if (!std::regex_match(file_name, match, kName)) return std::nullopt;
  ShardName name{.set = match[1], .shard = std::stoll(match[2]), .shards = std::stoll(match[3]), .ending = match[4]};
  if (name.shard >= name.shards || name.shards > kMostShards || shard_file_name(name) != file_name) return std::nullopt;
  return name;
}

std::string shard_file_name(const ShardName& name) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05lld-of-%05lld", static_cast<long long>(name.shard),
                static_cast<long long>(name.shards));
  return name.set + numbers + name.ending;
}

std::vector<fs::path> find_shards(const fs::path& path, const std::string& set) {
  try {
    return find(path, set);
  } catch (const fs::filesystem_error& error) {
    fail(error.path1().string(), ": cannot be read: ", error.code().message());
  }
}

}  // namespace octet::data
