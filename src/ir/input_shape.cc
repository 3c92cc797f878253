#include "ir/input_shape.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "ir/graph.h"

namespace octet::ir {
namespace {

constexpr int64_t kLargest = 65'536;

bool parse_size(std::string_view text, int64_t& size) {
  if (text == "N" || text == "n" || text == "?" || text == "-1") {
    size = kDynamic;
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc() && end == text.data() + text.size() && size >= 1 && size <= kLargest;
}

// A size that somebody could choose where none is known. A free batch can stay so, unless nothing else is open.
int64_t example_size(const Shape& shape, size_t axis) {
  if (shape[axis] > 0) return shape[axis];
  if (axis == 0) return std::count(shape.begin(), shape.end(), kDynamic) > 1 ? kDynamic : 1;
  if (shape.size() != 4) return 128;
  const bool channels_last = shape[3] == 3 || shape[3] == 1;
  return axis == 1 && !channels_last ? 3 : 224;
}

}  // namespace

InputShape parse_input_shape(std::string_view text) {
  InputShape out;
  std::string_view sizes = text;
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    out.name = text.substr(0, colon);
    sizes = text.substr(colon + 1);
  }
  const char separator = sizes.find(',') != std::string_view::npos ? ',' : 'x';
  for (bool more = true; more;) {
    const size_t end = sizes.find(separator);
    more = end != std::string_view::npos;
    int64_t size = 0;
    if (!parse_size(sizes.substr(0, end), size) || out.shape.size() == 16)
      fail_usage("'", text,
                 "' is no shape of an input; write its sizes (1 to 65536, N for one as the file has it) with x between "
                 "them, behind the input's name where there are several: 1x3x320x320, images:Nx3x320x320");
    out.shape.push_back(size);
    if (more) sizes.remove_prefix(end + 1);
  }
  return out;
}

std::vector<InputShape> parse_input_shapes(const std::vector<std::string>& texts) {
  std::vector<InputShape> out;
  for (const std::string& text : texts) out.push_back(parse_input_shape(text));
  return out;
}

std::string input_shape_text(const InputShape& shape) {
  std::string out = shape.name.empty() ? "" : shape.name + ":";
  for (size_t i = 0; i < shape.shape.size(); ++i)
    out += (i > 0 ? "x" : "") + (shape.shape[i] < 0 ? std::string("N") : std::to_string(shape.shape[i]));
  return out;
}

std::string advised_input_shape(const std::string& input, const Shape& shape, bool with_name) {
  InputShape out{with_name ? input : "", shape};
  for (size_t i = 0; i < shape.size(); ++i) out.shape[i] = example_size(shape, i);
  return "--input-shape " + input_shape_text(out);
}

std::string advised_input_shapes(const Graph& graph) {
  std::string out;
  for (const Value* input : graph.inputs()) {
    if (!input->type.shape || is_static(*input->type.shape)) continue;
    out += (out.empty() ? "" : " ") + advised_input_shape(input->name, *input->type.shape, graph.inputs().size() > 1);
  }
  return out;
}

}  // namespace octet::ir
