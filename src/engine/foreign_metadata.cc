#include "engine/foreign_metadata.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "engine/model_info.h"

namespace octet::engine {
namespace {

constexpr size_t kMostNames = 1 << 20;

// Of Python's literals those that lists of names are made of.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  std::optional<std::vector<std::string>> names() {
    std::vector<std::string> out;
    if (take('[')) {
      if (!items(']', [&] { return add(out); })) return std::nullopt;
    } else if (take('{')) {
      std::map<size_t, std::string> by_number;
      const auto entry = [&] {
        const std::optional<std::string> key = peek_quote() ? quoted() : digits();
        if (!key || !take(':')) return false;
        size_t number = 0;
        const auto [end, error] = std::from_chars(key->data(), key->data() + key->size(), number);
        std::optional<std::string> name = quoted();
        return error == std::errc() && end == key->data() + key->size() && name && by_number.size() < kMostNames &&
               by_number.emplace(number, std::move(*name)).second;
      };
      if (!items('}', entry)) return std::nullopt;
      for (auto& [number, name] : by_number) {
        if (number != out.size()) return std::nullopt;
        out.push_back(std::move(name));
      }
    } else {
      return std::nullopt;
    }
    skip_space();
    return at_ == text_.size() ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  bool add(std::vector<std::string>& out) {
    std::optional<std::string> name = quoted();
    if (!name || out.size() == kMostNames) return false;
    out.push_back(std::move(*name));
    return true;
  }
  template <typename Item>
  bool items(char end, Item item) {
    while (!take(end)) {
      if (!item()) return false;
      if (take(',')) continue;
      return take(end);
    }
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool peek_quote() {
    skip_space();
    return at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
  }
  std::optional<std::string> digits() {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  std::optional<std::string> quoted() {
    if (!peek_quote()) return std::nullopt;
    const char quote = text_[at_++];
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote) return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ == text_.size() || !escape(out)) return std::nullopt;
    }
    return std::nullopt;
  }
  bool escape(std::string& out) {
    switch (const char c = text_[at_++]) {
      case '\\':
      case '\'':
      case '"':
      case '/':
        out += c;
        return true;
      case 'n':
        out += '\n';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 'x':
        return code_point(2, out);
      case 'u':
        return code_point(4, out);
      default:
        return false;
    }
  }
  // As UTF-8; of a pair of surrogates, which JSON writes for what lies above U+FFFF, nothing is made.
  bool code_point(size_t length, std::string& out) {
    uint32_t code = 0;
    const std::string_view hex = text_.substr(at_, length);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (hex.size() != length || error != std::errc() || end != hex.data() + length || (code >= 0xD800 && code < 0xE000))
      return false;
    at_ += length;
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | (code >> 6));
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      out += static_cast<char>(0xE0 | (code >> 12));
      out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  return text;
}

std::string text_at(const Metadata& metadata, const char* name) {
  const auto entry = metadata.find(name);
  return entry == metadata.end() ? "" : entry->second;
}

// The entries of ONNX have no case.
std::string text_at_any_case(const Metadata& metadata, const std::string& name) {
  for (const auto& [entry, value] : metadata)
    if (lower_case(entry) == name) return lower_case(value);
  return "";
}

// imgsz: the side of the square that classifiers cut from the middle, "[224, 224]"; 0: not so.
int64_t square_side(const std::string& imgsz) {
  int64_t sides[2] = {0, 0};
  size_t count = 0, at = 0;
  while (at < imgsz.size()) {
    if (imgsz[at] < '0' || imgsz[at] > '9') {
      ++at;
      continue;
    }
    if (count == 2) return 0;
    const auto [end, error] = std::from_chars(imgsz.data() + at, imgsz.data() + imgsz.size(), sides[count]);
    if (error != std::errc()) return 0;
    at = static_cast<size_t>(end - imgsz.data());
    ++count;
  }
  const bool square = count == 1 || (count == 2 && sides[0] == sides[1]);
  return square && sides[0] >= 1 && sides[0] <= 16'384 ? sides[0] : 0;
}

void translate_onnx(const Metadata& metadata, Metadata& out) {
  const std::string format = text_at_any_case(metadata, "image.bitmappixelformat");
  if (format == "rgb8" || format == "bgr8") out[key::kColorOrder] = format.substr(0, 3);
  if (format == "gray8") out[key::kColorOrder] = "gray";
  const std::string range = text_at_any_case(metadata, "image.nominalpixelrange");
  if (range == "nominalrange_0_255") out[key::kMean] = "[0.0]", out[key::kStd] = "[0.00392156862745098]";
  if (range == "normalized_0_1") out[key::kMean] = "[0.0]", out[key::kStd] = "[1.0]";
  if (range == "normalized_1_1") out[key::kMean] = "[0.5]", out[key::kStd] = "[0.5]";
}

void translate_ultralytics(const Metadata& metadata, Metadata& out) {
  const auto names = parse_name_list(text_at(metadata, "names"));
  if (!names || names->empty()) return;
  out[key::kClasses] = class_names_text(*names);
  if (metadata.find("stride") == metadata.end()) return;  // names alone may be anybody's
  const std::string task = text_at(metadata, "task");
  if (task != "classify" && task != "detect") return;
  out[key::kMean] = "[0.0]", out[key::kStd] = "[1.0]", out[key::kColorOrder] = "rgb";
  if (task == "detect") {
    out[key::kTask] = "detector";
    // With the suppression in the network a row is a thing: corners, score, class.
    if (text_at(metadata, "end2end") == "True" || text_at(metadata, "args").find("'nms': True") != std::string::npos) {
      out[key::kDecoder] =
          R"({"scores": {"first": 4, "classes": )" + std::to_string(names->size()) +
          R"(}, "labels": {"value": 5}, "nms": {"score_threshold": 0.001, "iou_threshold": 1, "most": 0}})";
      return;
    }
    out[key::kDecoder] =
        R"({"boxes": {"layout": "columns", "code": "center"}, "scores": {"layout": "columns", "first": 4, "classes": )" +
        std::to_string(names->size()) + R"(}, "nms": {"iou_threshold": 0.7, "most": 300}})";
    return;
  }
  out[key::kTask] = "classification";
  if (const int64_t side = square_side(text_at(metadata, "imgsz")); side > 0)
    out[key::kResize] =
        R"({"mode": "center_crop", "shorter_side": )" + std::to_string(side) + R"(, "interpolation": "antialias"})";
}

}  // namespace

Metadata translated_metadata(const Metadata& metadata) {
  Metadata out;
  translate_onnx(metadata, out);
  translate_ultralytics(metadata, out);
  return out;
}

std::optional<std::vector<std::string>> parse_name_list(std::string_view text) {
  return LiteralReader(text).names();
}

}  // namespace octet::engine
