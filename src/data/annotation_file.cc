#include "data/annotation_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <pugixml.hpp>
#include <span>
#include <sstream>

#include "base/error.h"
#include "data/image.h"

namespace octet::data {
namespace {

constexpr float kGreatest = 1e6f;  // pixels; more is no picture

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<float> number(std::string_view text) {
  text = trimmed(text);
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(std::abs(value) <= kGreatest)) return std::nullopt;
  return value;
}

size_t line_at(std::string_view text, ptrdiff_t offset) {
  const auto end = text.begin() + std::clamp<ptrdiff_t>(offset, 0, static_cast<ptrdiff_t>(text.size()));
  return 1 + static_cast<size_t>(std::count(text.begin(), end, '\n'));
}

void add(AnnotationFile& file, AnnotatedObject object) {
  if (vision::area(object.box) > 0)
    file.objects.push_back(std::move(object));
  else
    ++file.empty_boxes;
}

// The number in <name> below `parent`.
float number_in(std::string_view xml, const pugi::xml_node& parent, const char* name) {
  const pugi::xml_node node = parent.child(name);
  if (!node)
    throw DecodeError(str("line ", line_at(xml, parent.offset_debug()), ": <", parent.name(), "> has no <", name, ">"));
  const std::optional<float> value = number(node.text().get());
  if (!value)
    throw DecodeError(str("line ", line_at(xml, node.offset_debug()), ": <", name, "> is '", node.text().get(),
                          "', expected a number of pixels"));
  return *value;
}

int whole(float pixels) {
  return static_cast<int>(std::lround(pixels));
}

}  // namespace

AnnotationFile parse_voc(std::string_view xml) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  if (!parsed) throw DecodeError(str("line ", line_at(xml, parsed.offset), ": is no XML: ", parsed.description()));
  const pugi::xml_node root = document.child("annotation");
  if (!root)
    throw DecodeError(str("its first element is <", document.document_element().name(), ">, expected <annotation>"));
  AnnotationFile file;
  if (const pugi::xml_node size = root.child("size")) {
    file.width = whole(number_in(xml, size, "width"));
    file.height = whole(number_in(xml, size, "height"));
  }
  for (const pugi::xml_node& object : root.children("object")) {
    const std::string name(trimmed(object.child("name").text().get()));
    const size_t line = line_at(xml, object.offset_debug());
    if (name.empty()) throw DecodeError(str("line ", line, ": <object> has no <name>"));
    const pugi::xml_node box = object.child("bndbox");
    if (!box) throw DecodeError(str("line ", line, ": <object> '", name, "' has no <bndbox>"));
    add(file, {.class_name = name,
               .box = {number_in(xml, box, "xmin") - 1, number_in(xml, box, "ymin") - 1, number_in(xml, box, "xmax"),
                       number_in(xml, box, "ymax")},
               .difficult = object.child("difficult").text().as_int() != 0});
  }
  return file;
}

AnnotationFile parse_kitti(std::string_view text) {
  AnnotationFile file;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::vector<std::string_view> fields;
    for (std::string_view rest = trimmed(text.substr(0, end)); !rest.empty(); rest = trimmed(rest)) {
      const size_t length = std::min(rest.find_first_of(" \t"), rest.size());
      fields.push_back(rest.substr(0, length));
      rest.remove_prefix(length);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
    if (fields.empty()) continue;
    if (fields.size() != 15 && fields.size() != 16)
      throw DecodeError(str("line ", line, ": has ", fields.size(), " fields, KITTI's labels have 15"));
    const auto field = [&](size_t i, const char* what) {
      const std::optional<float> value = number(fields[i]);
      if (!value)
        throw DecodeError(
            str("line ", line, ": ", what, " (field ", i + 1, ") is '", fields[i], "', expected a number"));
      return *value;
    };
    add(file, {.class_name = std::string(fields[0]),
               .box = {field(4, "x0"), field(5, "y0"), field(6, "x1"), field(7, "y1")},
               .difficult = field(2, "occlusion") != 0});
  }
  return file;
}

std::string write_voc(const AnnotationFile& annotation, const std::string& image_name) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("annotation");
  root.append_child("filename").text().set(image_name.c_str());
  pugi::xml_node size = root.append_child("size");
  size.append_child("width").text().set(annotation.width);
  size.append_child("height").text().set(annotation.height);
  size.append_child("depth").text().set(3);
  for (const AnnotatedObject& object : annotation.objects) {
    pugi::xml_node node = root.append_child("object");
    node.append_child("name").text().set(object.class_name.c_str());
    node.append_child("difficult").text().set(object.difficult ? 1 : 0);
    pugi::xml_node box = node.append_child("bndbox");
    box.append_child("xmin").text().set(static_cast<int>(std::floor(object.box.x0)) + 1);
    box.append_child("ymin").text().set(static_cast<int>(std::floor(object.box.y0)) + 1);
    box.append_child("xmax").text().set(static_cast<int>(std::ceil(object.box.x1)));
    box.append_child("ymax").text().set(static_cast<int>(std::ceil(object.box.y1)));
  }
  std::ostringstream out;
  document.save(out, "  ", pugi::format_indent | pugi::format_no_declaration);
  return out.str();
}

}  // namespace octet::data
