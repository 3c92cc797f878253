#include "engine/model_info.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/name_lines.h"
#include "engine/foreign_metadata.h"
#include "engine/json_depth.h"

namespace octet::engine {
namespace {

using InfoJson = nlohmann::json;
constexpr size_t kMostClasses = 1 << 20, kMostChannels = 64, kMostText = 200;
constexpr int kMaxInfoDepth = 16;

// The entry of `metadata` under `name`; its checks say which it is.
class Entry {
 public:
  Entry(const Metadata& metadata, const char* name) : name_(name) {
    const auto found = metadata.find(name);
    if (found != metadata.end()) text_ = &found->second;
  }
  explicit operator bool() const { return text_ != nullptr; }

  const std::string& text() const {
    if (text_->empty() || text_->size() > kMostText) refuse("a short text");
    return *text_;
  }
  InfoJson json() const {
    if (json_depth(*text_) > kMaxInfoDepth) refuse("JSON of a few levels");
    try {
      return InfoJson::parse(*text_);
    } catch (const InfoJson::exception&) {
      refuse("valid JSON");
    }
  }
  InfoJson object() const {
    InfoJson value = json();
    if (!value.is_object()) refuse("a JSON object");
    return value;
  }
  std::vector<double> numbers(bool positive) const {
    const InfoJson list = json();
    if (!list.is_array() || list.empty() || list.size() > kMostChannels) refuse("a list of numbers, one a channel");
    std::vector<double> out;
    for (const InfoJson& item : list) {
      if (!item.is_number()) refuse("a list of numbers");
      out.push_back(item.get<double>());
      if (!std::isfinite(static_cast<float>(out.back()))) refuse("a list of finite numbers");
      if (positive && !(static_cast<float>(out.back()) > 0)) refuse("a list of numbers above 0");
    }
    return out;
  }
  std::vector<std::string> texts() const {
    const InfoJson list = json();
    if (!list.is_array() || list.size() > kMostClasses) refuse("a JSON list of texts");
    std::vector<std::string> out;
    for (const InfoJson& item : list) {
      if (!item.is_string()) refuse("a JSON list of texts");
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  [[noreturn]] void refuse(const char* expected) const {
    constexpr size_t kShown = 60;
    fail("the metadata entry '", name_, "' is no ", std::string_view(expected).substr(expected[0] == 'a' ? 2 : 0),
         ": '", text_->substr(0, kShown), text_->size() > kShown ? "..." : "", "'");
  }

 private:
  const char* name_;
  const std::string* text_ = nullptr;
};

void read_resize(const Entry& entry, ModelInfo& info) {
  const InfoJson rule = entry.object();
  const auto text = [&](const char* name, std::string& out) {
    const auto found = rule.find(name);
    if (found == rule.end()) return;
    if (!found->is_string()) entry.refuse("way of resizing");
    out = found->get<std::string>();
  };
  text("mode", info.resize), text("interpolation", info.interpolation);
  if (const auto side = rule.find("shorter_side"); side != rule.end()) {
    if (side->is_number_integer()) info.shorter_side = side->get<int64_t>();
    if (info.shorter_side < 1 || info.shorter_side > 65'536) entry.refuse("way of resizing (shorter_side)");
  }
  if (const auto fraction = rule.find("central_fraction"); fraction != rule.end()) {
    info.central_fraction = fraction->is_number() ? fraction->get<double>() : 0;
    if (!(info.central_fraction > 0 && info.central_fraction <= 1)) entry.refuse("way of resizing (central_fraction)");
  }
}

template <typename Names>
const std::string& one_of(const Entry& entry, const Names& names, const char* expected) {
  for (const char* const name : names)
    if (entry.text() == name) return entry.text();
  entry.refuse(expected);
}

}  // namespace

Metadata standard_metadata(const Metadata& metadata) {
  Metadata out = translated_metadata(metadata);
  for (const char* const name : {key::kTask, key::kClasses, key::kMean, key::kStd, key::kColorOrder, key::kLayout,
                                 key::kResize, key::kExifOrientation, key::kDecoder})
    if (const auto found = metadata.find(name); found != metadata.end()) out[name] = found->second;
  if (const auto old = metadata.find(key::kOldClasses); old != metadata.end() && metadata.count(key::kClasses) == 0) {
    std::vector<std::string> names;
    std::istringstream lines(old->second);
    for (std::string line; std::getline(lines, line);) names.push_back(unescape_line(line));
    out[key::kClasses] = class_names_text(names);
  }
  return out;
}

ModelInfo read_model_info(const Metadata& metadata) {
  const Metadata own = standard_metadata(metadata);
  ModelInfo info;
  if (const Entry entry(own, key::kTask); entry) info.task = entry.text();
  if (const Entry entry(own, key::kClasses); entry) info.classes = entry.texts();
  if (const Entry entry(own, key::kMean); entry) info.mean = entry.numbers(/*positive=*/false);
  if (const Entry entry(own, key::kStd); entry) info.std = entry.numbers(/*positive=*/true);
  if (const Entry entry(own, key::kColorOrder); entry)
    info.color_order = one_of(entry, std::array{"rgb", "bgr", "gray"}, "order of colors (rgb, bgr, gray)");
  if (const Entry entry(own, key::kLayout); entry)
    info.layout = one_of(entry, std::array{"NCHW", "NHWC"}, "layout (NCHW, NHWC)");
  if (const Entry entry(own, key::kResize); entry) read_resize(entry, info);
  if (const Entry entry(own, key::kExifOrientation); entry)
    info.exif_orientation = one_of(entry, std::array{"true", "false"}, "truth value (true, false)") == "true";
  if (const Entry entry(own, key::kDecoder); entry) info.decoder = (entry.object(), own.at(key::kDecoder));
  return info;
}

std::vector<std::string> read_class_names(const Metadata& metadata) {
  const Metadata own = standard_metadata(metadata);
  const Entry entry(own, key::kClasses);
  return entry ? entry.texts() : std::vector<std::string>();
}

std::string class_names_text(const std::vector<std::string>& names) {
  return InfoJson(names).dump(-1, ' ', false, InfoJson::error_handler_t::replace);
}

octet::ImageFormat image_format(const ModelInfo& info, int64_t channels) {
  require(!info.mean.empty() && !info.std.empty(), "the file names no mean and deviation of the input (", key::kMean,
          ", ", key::kStd, ")");
  require(channels >= 1 && channels <= 4, "the input has ", channels, " channels; images have 1 to 4");
  const auto count = static_cast<size_t>(channels);
  octet::ImageFormat format;
  for (const auto* const values : {&info.mean, &info.std})
    require(values->size() == 1 || values->size() == count, "the file names ", values->size(),
            " values of mean or deviation for the ", channels, " channels of the input");
  for (size_t c = 0; c < count; ++c) {
    const double mean = info.mean[info.mean.size() == 1 ? 0 : c], std = info.std[info.std.size() == 1 ? 0 : c];
    format.scale[c] = static_cast<float>(1 / (255 * std));
    format.offset[c] = static_cast<float>(-mean / std);
    format.channel[c] = static_cast<int>(info.color_order == "bgr" && count == 3 ? 2 - c : c);
  }
  return format;
}

}  // namespace octet::engine
