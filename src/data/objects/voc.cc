#include "data/objects/voc.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <pugixml.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "data/objects/label_folder.h"
#include "data/objects/numbers.h"

namespace octet::data {
namespace fs = std::filesystem;
namespace {

int64_t line_at(std::string_view text, ptrdiff_t offset) {
  const auto end = text.begin() + std::clamp<ptrdiff_t>(offset, 0, static_cast<ptrdiff_t>(text.size()));
  return 1 + std::count(text.begin(), end, '\n');
}

// The number in <name> below `parent`.
float number_in(std::string_view xml, const pugi::xml_node& parent, const char* name) {
  const pugi::xml_node node = parent.child(name);
  if (!node)
    throw DecodeError(str("line ", line_at(xml, parent.offset_debug()), ": <", parent.name(), "> has no <", name, ">"));
  const std::optional<float> value = parse_float(node.text().get());
  if (!value)
    throw DecodeError(str("line ", line_at(xml, node.offset_debug()), ": <", name, "> is '", node.text().get(),
                          "', expected a number of pixels"));
  return *value;
}

// A side of the image; 0, unknown, where it is none.
int side_in(std::string_view xml, const pugi::xml_node& size, const char* name) {
  const float pixels = number_in(xml, size, name);
  return pixels >= 1 && pixels <= 1e6f ? static_cast<int>(std::lround(pixels)) : 0;
}

// The first word of every line.
std::vector<std::string> names_in(const fs::path& list) {
  std::istringstream lines(read_file(list));
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (std::string name; words >> name) out.push_back(name);
  }
  require(!out.empty(), list.string(), ": names no image");
  return out;
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
    file.width = side_in(xml, size, "width");
    file.height = side_in(xml, size, "height");
  }
  for (const pugi::xml_node& object : root.children("object")) {
    const std::string name(trimmed(object.child("name").text().get()));
    const int64_t line = line_at(xml, object.offset_debug());
    if (name.empty()) throw DecodeError(str("line ", line, ": <object> has no <name>"));
    const pugi::xml_node box = object.child("bndbox");
    if (!box) throw DecodeError(str("line ", line, ": <object> '", name, "' has no <bndbox>"));
    file.objects.push_back({.class_name = name,
                            .box = {number_in(xml, box, "xmin") - 1, number_in(xml, box, "ymin") - 1,
                                    number_in(xml, box, "xmax"), number_in(xml, box, "ymax")},
                            .difficult = object.child("difficult").text().as_int() != 0,
                            .place = line});
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

AnnotatedSet read_voc(const DatasetOptions& options) {
  const bool apart = !options.labels.empty();
  LabelFolder folder{.root = options.path,
                     .images = apart ? options.path : folder_in(options.path, {"JPEGImages"}),
                     .labels = apart ? options.labels : folder_in(options.path, {"Annotations"}),
                     .ending = ".xml",
                     .parse = parse_voc,
                     .chosen = {}};
  if (!options.split.empty()) folder.chosen = names_in(options.path / "ImageSets" / "Main" / (options.split + ".txt"));
  return read_label_folder(folder);
}

}  // namespace octet::data
