// Changes to the JSON of a plan, driven by the bytes of a fuzzer: the text stays well formed, so that nearly every
// input gets to the checks behind the parser.
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace octet::testing {

using Json = nlohmann::ordered_json;

// Every value in the document that is not the document itself, with its container.
struct Place {
  Json* parent;
  size_t index;     // in arrays
  std::string key;  // in objects
  Json& value() const { return parent->is_array() ? (*parent)[index] : (*parent)[key]; }
};

inline void collect(Json& json, std::vector<Place>& out) {
  if (json.is_array())
    for (size_t i = 0; i < json.size(); ++i) out.push_back({&json, i, ""}), collect(json[i], out);
  if (json.is_object())
    for (auto& [key, value] : json.items()) out.push_back({&json, 0, key}), collect(value, out);
}

// One change: four bytes, of which two choose the place.
inline void change(Json& plan, std::span<const uint8_t, 4> bytes) {
  static const int64_t kNumbers[] = {
      -1,        0,         1,         2,         3,         4,         5,         7,     8,     9,       15,
      16,        17,        31,        32,        33,        63,        64,        65,    127,   128,     129,
      255,       256,       257,       1000,      4095,      4096,      4097,      65535, 65536, 1000000, INT32_MAX,
      1LL << 31, 1LL << 32, 1LL << 40, 1LL << 53, INT64_MAX, INT64_MIN, INT32_MIN, -64,   -128};
  static const double kReals[] = {0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-38, 3e38, 1e39, 1e308, -1e308, 1e-3, 255.5};
  static const char* kTexts[] = {"",
                                 "conv",
                                 "depthwise",
                                 "quantize",
                                 "dequantize",
                                 "add",
                                 "mul",
                                 "copy",
                                 "fill",
                                 "max_pool",
                                 "average_pool",
                                 "global_average",
                                 "row_sums",
                                 "squeeze_excite",
                                 "channel_tables",
                                 "scale_shift_codes",
                                 "unary",
                                 "binary",
                                 "float_conv",
                                 "float_gemm",
                                 "softmax",
                                 "reduce",
                                 "strided_copy",
                                 "codes",
                                 "nhwc",
                                 "dense",
                                 "index",
                                 "weights",
                                 "acc_init",
                                 "multiplier",
                                 "table",
                                 "direct scalar",
                                 "direct avx2",
                                 "direct avx512_vnni",
                                 "direct amx_int8/rows",
                                 "winograd4x4 avx512_vnni",
                                 "row_winograd avx512_vnni",
                                 "winograd4x4 avx2",
                                 "widened avx2",
                                 "rows amx_int8/channels",
                                 "x/y/z",
                                 "\xff\xfe"};
  static const char* kKeys[] = {"residual", "rounds_twice", "zero_point", "groups",   "lo",       "hi",
                                "kernel_h", "stride_h",     "dilation_w", "pad_left", "alias_of", "halo",
                                "tactic",   "table",        "average",    "function", "float_lo", "mid_lo",
                                "float_hi", "rank",         "reason",     "rows",     "columns",  "step_h"};
  std::vector<Place> places;
  collect(plan, places);
  if (places.empty()) return;
  const size_t at = (bytes[0] | bytes[1] << 8) % places.size();
  const Place& place = places[at];
  const uint8_t what = bytes[2], value = bytes[3];
  Json& target = place.value();
  switch (what % 9) {
    case 0:
      target = static_cast<int>(value) - 8;
      break;
    case 1:
      target = kNumbers[value % std::size(kNumbers)];
      break;
    case 2:
      target = kReals[value % std::size(kReals)];
      break;
    case 3:
      target = kTexts[value % std::size(kTexts)];
      break;
    case 4:
      if (place.parent->is_array())
        place.parent->erase(place.index);
      else
        place.parent->erase(place.key);
      break;
    case 5: {  // a number, text or list that stands nearby
      const Json other = places[(at + value) % places.size()].value();
      if (!other.is_structured() || (other.is_array() && !other.empty() && !other[0].is_structured())) target = other;
      break;
    }
    case 6:
      if (target.is_object()) target[kKeys[value % std::size(kKeys)]] = what / 9;
      if (target.is_array()) target.push_back(static_cast<int>(value));
      break;
    case 7:
      if (target.is_array() && !target.empty()) {
        const Json again = target[value % target.size()];
        target.push_back(again);
      }
      break;
    case 8:
      if (target.is_number_integer())  // wraps around
        target = static_cast<int64_t>(static_cast<uint64_t>(target.get<int64_t>()) + static_cast<int8_t>(value));
      break;
  }
}

// The plan with the changes of `bytes`, at most 12 of them.
inline std::string changed_plan(const std::string& text, std::span<const uint8_t> bytes) {
  Json plan = Json::parse(text);
  for (size_t i = 0; i + 4 <= bytes.size() && i < 48; i += 4) change(plan, bytes.subspan(i).first<4>());
  return plan.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octet::testing
