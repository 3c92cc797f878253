// The fields of a protobuf message as ONNX uses them, for proto_read.cc.
#pragma once
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octet::onnx::proto {

using protozero::pbf_wire_type;

[[noreturn]] inline void damaged(const std::string& what) {
  fail("is not an ONNX model, or is damaged or truncated: ", what);
}

// A protobuf message whose fields are read with their wire type checked: protozero itself only asserts it.
class Fields {
 public:
  explicit Fields(std::string_view bytes, const char* message)
      : reader_(protozero::data_view(bytes.data(), bytes.size())), message_(message) {}

  bool next() { return reader_.next(); }
  uint32_t tag() const { return reader_.tag(); }
  void skip() { reader_.skip(); }

  int64_t integer() {
    need(pbf_wire_type::varint);
    return reader_.get_int64();
  }
  float number() {
    need(pbf_wire_type::fixed32);
    return reader_.get_float();
  }
  std::string_view bytes() {
    need(pbf_wire_type::length_delimited);
    const protozero::data_view view = reader_.get_view();
    return {view.data(), view.size()};
  }
  std::string text() { return std::string(bytes()); }

  // Repeated scalars, packed or one by one.
  template <typename T>
  void integers(std::vector<T>& out) {
    if (!reader_.has_wire_type(pbf_wire_type::length_delimited)) {
      out.push_back(static_cast<T>(integer()));
      return;
    }
    const std::string_view packed = bytes();
    const char *at = packed.data(), *end = at + packed.size();
    while (at != end) out.push_back(static_cast<T>(protozero::decode_varint(&at, end)));
  }
  template <typename T>
  void fixed(std::vector<T>& out) {
    constexpr auto kWire = sizeof(T) == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64;
    if (reader_.has_wire_type(kWire)) {
      if constexpr (sizeof(T) == 4)
        out.push_back(reader_.get_float());
      else
        out.push_back(reader_.get_double());
      return;
    }
    const std::string_view packed = bytes();
    if (packed.size() % sizeof(T) != 0) damaged(str("a packed field of ", message_, " has an impossible length"));
    const size_t old = out.size(), count = packed.size() / sizeof(T);
    out.resize(old + count);
    if (count > 0) std::memcpy(out.data() + old, packed.data(), packed.size());
  }

 private:
  void need(pbf_wire_type type) {
    if (!reader_.has_wire_type(type))
      damaged(str("field ", tag(), " of ", message_, " has another type than expected"));
  }
  protozero::pbf_reader reader_;
  const char* message_;
};

}  // namespace octet::onnx::proto
