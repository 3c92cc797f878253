// tf.train.Example, what the records of TFRecord files hold: lists of texts, floats or integers by name.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace octet::data {

struct Feature {
  std::vector<std::string_view> texts;  // or other bytes, as those of an image; they lie in what was read
  std::vector<float> floats;
  std::vector<int64_t> integers;
};
using Features = std::map<std::string, Feature, std::less<>>;

// Throws DecodeError (image.h) where `bytes` are no Example. Bytes of texts are not looked at.
Features read_features(std::string_view bytes);

const Feature* find(const Features& features, std::string_view key);  // null: there is none
// Its only text, or its only integer. Throws DecodeError, which names the key, where that is missing, empty, of another
// type or not alone.
std::string_view only_text(const Features& features, std::string_view key);
int64_t only_integer(const Features& features, std::string_view key);

// Makes an Example, its features in the order in which they are added.
class FeatureWriter {
 public:
  void add_texts(std::string_view key, const std::vector<std::string>& texts);
  void add_text(std::string_view key, std::string_view text);
  void add_integers(std::string_view key, const std::vector<int64_t>& values);
  void add_floats(std::string_view key, const std::vector<float>& values);

  std::string example() const;

 private:
  void add(std::string_view key, int kind, const std::string& list);

  std::string features_;  // the message Features
};

}  // namespace octet::data
