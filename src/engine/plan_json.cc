#include "engine/plan_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/json_depth.h"

namespace octet::engine {
namespace {

using Json = nlohmann::ordered_json;
constexpr Layout kLayouts[] = {Layout::kCodes, Layout::kFloatNhwc, Layout::kFloatDense, Layout::kIndexDense,
                               Layout::kSums,  Layout::kCodeRows,  Layout::kCodeColumns};
constexpr size_t kMaxItems = 1 << 20;
constexpr int kMaxDepth = 16;

Json buffer_json(const Buffer& b) {
  Json j{{"name", b.name}, {"layout", layout_name(b.layout)}, {"shape", b.shape}, {"offset", b.offset}};
  if (b.alias_of >= 0) j["alias_of"] = b.alias_of;
  if (b.channel_offset > 0) j["channel_offset"] = b.channel_offset;
  const auto every = [&j](const char* key, const Buffer::Every& e) {
    if (e.first != 0 || e.step != 1) j[key] = {e.first, e.step};
  };
  every("rows", b.rows), every("columns", b.columns);
  if (!holds_codes(b.layout)) return j;
  j["scale"] = static_cast<double>(b.scale);
  j["zero_point"] = b.zero_point;
  j["code_offset"] = b.code_offset;
  j["code_range"] = {b.code_min, b.code_max};
  j["halo"] = {b.halo.top, b.halo.bottom, b.halo.left, b.halo.right};
  return j;
}

Json step_json(const Step& s) {
  Json j{{"kind", s.kind},     {"name", s.name},       {"op", s.op},
         {"inputs", s.inputs}, {"outputs", s.outputs}, {"int8", s.int8}};
  if (!s.tactic.empty()) j["tactic"] = s.tactic;
  if (!s.reason.empty()) j["reason"] = s.reason;
  if (!s.ints.empty()) j["ints"] = s.ints;
  if (!s.lists.empty()) j["lists"] = s.lists;
  if (!s.floats.empty()) j["floats"] = s.floats;
  for (const auto& [key, ref] : s.constants) j["constants"][key] = {ref.offset, ref.bytes};
  return j;
}

// Typed access to one object; `where` is for messages.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    require(json_.is_object(), where_, ": expected an object");
  }
  const Json* find(const char* key) const {
    const auto at = json_.find(key);
    return at == json_.end() ? nullptr : &*at;
  }
  const Json& at(const char* key) const {
    const Json* found = find(key);
    require(found != nullptr, where_, ": '", key, "' is missing");
    return *found;
  }
  std::string text(const char* key) const {
    const Json& v = at(key);
    require(v.is_string(), where_, ": '", key, "' is not a text");
    return v.get<std::string>();
  }
  int64_t integer(const Json& v, const char* key) const {
    require(v.is_number_integer() && (!v.is_number_unsigned() || v.get<uint64_t>() <= INT64_MAX), where_, ": '", key,
            "' is not a whole number");
    return v.get<int64_t>();
  }
  int64_t integer(const char* key) const { return integer(at(key), key); }
  int small(const Json& v, const char* key) const {
    const int64_t value = integer(v, key);
    require(value >= -1 && value <= INT32_MAX, where_, ": '", key, "' = ", value, " is out of range");
    return static_cast<int>(value);
  }
  double real(const Json& v, const char* key) const {
    require(v.is_number(), where_, ": '", key, "' is not a number");
    const double value = v.get<double>();
    require(std::isfinite(static_cast<float>(value)), where_, ": '", key, "' is not finite");
    return value;
  }
  const Json& array(const char* key) const {
    const Json& v = at(key);
    require(v.is_array() && v.size() <= kMaxItems, where_, ": '", key, "' is not a list of acceptable length");
    return v;
  }
  std::vector<int64_t> integers(const Json& list, const char* key) const {
    require(list.is_array() && list.size() <= kMaxItems, where_, ": '", key, "' is not a list");
    std::vector<int64_t> out;
    for (const Json& v : list) out.push_back(integer(v, key));
    return out;
  }
  std::vector<int> smalls(const char* key) const {
    std::vector<int> out;
    for (const Json& v : array(key)) out.push_back(small(v, key));
    return out;
  }
  std::vector<int64_t> integers(const char* key, size_t count) const {
    auto out = integers(at(key), key);
    require(out.size() == count, where_, ": '", key, "' has ", out.size(), " numbers, expected ", count);
    return out;
  }
  // Calls use(name, value) for every member of the object `key`, if it is there.
  template <typename Use>
  void members(const char* key, Use use) const {
    const Json* object = find(key);
    if (object == nullptr) return;
    require(object->is_object(), where_, ": '", key, "' is not an object");
    for (const auto& [name, value] : object->items()) use(name, value);
  }

 private:
  const Json& json_;
  std::string where_;
};

Buffer read_buffer(const Json& json, size_t index) {
  const Reader r(json, str("buffer ", index));
  Buffer b;
  b.name = r.text("name");
  const std::string layout = r.text("layout");
  bool known = false;
  for (Layout l : kLayouts)
    if (layout == layout_name(l)) b.layout = l, known = true;
  require(known, "buffer ", index, ": unknown layout '", layout, "'");
  b.shape = r.integers(r.at("shape"), "shape");
  b.offset = r.integer("offset");
  if (r.find("alias_of")) b.alias_of = r.small(r.at("alias_of"), "alias_of");
  if (r.find("channel_offset")) b.channel_offset = r.integer("channel_offset");
  const auto every = [&r](const char* key, Buffer::Every* e) {
    if (r.find(key) == nullptr) return;
    const auto numbers = r.integers(key, 2);
    e->first = numbers[0], e->step = numbers[1];
  };
  every("rows", &b.rows), every("columns", &b.columns);
  if (!holds_codes(b.layout)) return b;
  b.scale = static_cast<float>(r.real(r.at("scale"), "scale"));
  b.zero_point = r.small(r.at("zero_point"), "zero_point");
  b.code_offset = r.small(r.at("code_offset"), "code_offset");
  const auto range = r.integers("code_range", 2);
  require(range[0] >= 0 && range[1] <= 255, "buffer ", index, ": code range is outside 0..255");
  b.code_min = static_cast<int32_t>(range[0]), b.code_max = static_cast<int32_t>(range[1]);
  const auto halo = r.integers("halo", 4);
  b.halo = {halo[0], halo[1], halo[2], halo[3]};
  return b;
}

Step read_step(const Json& json, size_t index) {
  const Reader r(json, str("step ", index));
  Step s;
  s.kind = r.text("kind"), s.name = r.text("name"), s.op = r.text("op");
  s.inputs = r.smalls("inputs"), s.outputs = r.smalls("outputs");
  const Json& int8 = r.at("int8");
  require(int8.is_boolean(), "step ", index, ": 'int8' is not true or false");
  s.int8 = int8.get<bool>();
  if (r.find("tactic")) s.tactic = r.text("tactic");
  if (r.find("reason")) s.reason = r.text("reason");
  r.members("ints", [&](const std::string& key, const Json& v) { s.ints[key] = r.integer(v, key.c_str()); });
  r.members("lists", [&](const std::string& key, const Json& v) { s.lists[key] = r.integers(v, key.c_str()); });
  r.members("floats", [&](const std::string& key, const Json& v) { s.floats[key] = r.real(v, key.c_str()); });
  r.members("constants", [&](const std::string& key, const Json& v) {
    const auto pair = r.integers(v, key.c_str());
    require(pair.size() == 2, "step ", index, ": constant '", key, "' is not [offset, bytes]");
    s.constants[key] = {pair[0], pair[1]};
  });
  return s;
}

Json parse(std::string_view text) {
  require(json_depth(text) <= kMaxDepth, "the plan is nested too deeply");
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    fail("the plan is not valid JSON (", e.what(), ")");
  }
}

}  // namespace

namespace {

Json plan_json(const Plan& plan) {
  Json j{{"name", plan.name}, {"isa", plan.isa}, {"arena_bytes", plan.arena_bytes}};
  j["metadata"] = plan.metadata;
  j["inputs"] = plan.inputs, j["outputs"] = plan.outputs;
  j["buffers"] = Json::array(), j["steps"] = Json::array();
  for (const Buffer& b : plan.buffers) j["buffers"].push_back(buffer_json(b));
  for (const Step& s : plan.steps) j["steps"].push_back(step_json(s));
  if (plan.program) j["program"] = {plan.program_bytes.offset, plan.program_bytes.bytes};
  for (const Plan& profile : plan.profiles) j["profiles"].push_back(plan_json(profile));
  return j;
}

Plan read_plan(const Json& json, bool is_profile) {
  const Reader r(json, is_profile ? "profile" : "plan");
  Plan plan;
  plan.name = r.text("name"), plan.isa = r.text("isa");
  plan.arena_bytes = r.integer("arena_bytes");
  r.members("metadata", [&](const std::string& key, const Json& v) {
    require(v.is_string(), "plan: metadata '", key, "' is not a text");
    plan.metadata[key] = v.get<std::string>();
  });
  plan.inputs = r.smalls("inputs"), plan.outputs = r.smalls("outputs");
  const Json &buffers = r.array("buffers"), &steps = r.array("steps");
  for (size_t i = 0; i < buffers.size(); ++i) plan.buffers.push_back(read_buffer(buffers[i], i));
  for (size_t i = 0; i < steps.size(); ++i) plan.steps.push_back(read_step(steps[i], i));
  if (r.find("program")) {
    const auto pair = r.integers("program", 2);
    plan.program_bytes = {pair[0], pair[1]};
  }
  if (!r.find("profiles")) return plan;
  require(!is_profile, "plan: a profile has profiles of its own");
  for (const Json& profile : r.array("profiles")) plan.profiles.push_back(read_plan(profile, true));
  return plan;
}

}  // namespace

std::string plan_to_json(const Plan& plan) {
  return plan_json(plan).dump(1, ' ', false, Json::error_handler_t::replace);
}

Plan plan_from_json(std::string_view text) {
  return read_plan(parse(text), false);
}

}  // namespace octet::engine
