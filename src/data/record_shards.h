// Which files hold a set of records that is divided into shards, named as TensorFlow names them: train-00003-of-01024,
// or train.tfrecord-00003-of-01024, or train-00003-of-01024.tfrecord.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::data {

// `*` stands for any text, `?` for any character.
bool fits_pattern(std::string_view text, std::string_view pattern);

struct ShardName {
  std::string set;  // what stands before the numbers
  int64_t shard = 0, shards = 0;
  std::string ending;  // what follows them
};
// Nothing where the name has no part like -00003-of-01024.
std::optional<ShardName> shard_name(const std::string& file_name);
// The opposite.
std::string shard_file_name(const ShardName& name);

// The files that `path` means, sorted: a file; those that fit a pattern with * and ? in its last part; the set `set` of
// a folder, or, where that is empty, its only set. In a folder also TRAIN.tfrecord is a set, called TRAIN. UserError
// where there are none; where a folder has several sets and `set` chooses none of them; and, naming them, where shards
// of a set are missing that the pattern, or the folder, would include.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& path, const std::string& set);

}  // namespace octet::data
