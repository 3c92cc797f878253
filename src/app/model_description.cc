#include "app/model_description.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "app/experiment_data.h"
#include "base/error.h"
#include "engine/model_info.h"
#include "schema/tree.h"
#include "tasks/registry.h"
#include "tasks/signature.h"

namespace octet::app {
namespace {

using Json = nlohmann::ordered_json;
namespace key = engine::key;

std::string text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json json_of(const schema::Node& node) {
  switch (node.kind) {
    case schema::Node::Kind::kNull:
      return nullptr;
    case schema::Node::Kind::kList: {
      Json list = Json::array();
      for (const schema::Node& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case schema::Node::Kind::kMap: {
      Json map = Json::object();
      for (const schema::Entry& entry : node.entries) map[entry.key] = json_of(entry.value);
      return map;
    }
    case schema::Node::Kind::kScalar:
      break;
  }
  if (!node.quoted)
    if (Json value = Json::parse(node.text, nullptr, /*allow_exceptions=*/false); value.is_primitive()) return value;
  return node.text;
}

Json json_of(const schema::Section& section) {
  return json_of(schema::parse_yaml(schema::write_section(section), "the options"));
}

Json resize_json(const data::TransformOptions& transform) {
  Json rule;
  if (transform.mode == data::ResizeMode::kCenterCrop) {
    rule = {{"mode", "center_crop"}, {"shorter_side", data::shorter_side(transform)}};
  } else if (transform.preprocessing && transform.preprocessing->moves_pixels()) {
    data::PreprocessingOptions preprocessing = *transform.preprocessing;
    schema::Section section;
    describe(section, preprocessing);
    rule = {{"mode", "tao"}, {"scale_first", transform.tao_compatible}, {"preprocessing", json_of(section)}};
  } else {
    rule = {{"mode", "stretch"}};
    if (transform.central_fraction != 1) rule["central_fraction"] = transform.central_fraction;
  }
  rule["interpolation"] = schema::enum_name(transform.interpolation);
  return rule;
}

// Of an image input of rank 4, as Octet reads it.
std::optional<data::NetworkInput> image_input_of(const tasks::Signature& network) {
  try {
    return tasks::image_input(network);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// What the rule says, under the keys of `data`.
void read_resize(const Json& rule, Json& data) {
  const std::string mode = rule.value("mode", "");
  if (rule.contains("interpolation")) data["interpolation"] = rule["interpolation"];
  if (mode == "center_crop") {
    require(rule.contains("shorter_side"), key::kResize, ": the mode center_crop needs shorter_side");
    data["resize"] = rule["shorter_side"];
  } else if (mode == "stretch") {
    if (rule.contains("central_fraction")) data["central_fraction"] = rule["central_fraction"];
  } else if (mode == "tao") {
    require(rule.contains("preprocessing"), key::kResize, ": the mode tao needs preprocessing");
    data["preprocessing"] = rule["preprocessing"];
    if (rule.value("scale_first", false)) data["augment"] = {{"tao_compatible", true}};
  } else {
    fail(key::kResize, ": this version does not know the mode '", mode, "' (it has stretch, center_crop and tao)");
  }
}

// What `json` has at the first place where the two differ, and that place: "postprocessing.dbscan_eps".
struct Difference {
  std::string path;
  Json here, there;
};
std::optional<Difference> first_difference(const Json& here, const Json& there, const std::string& path) {
  if (here == there) return std::nullopt;
  if (!here.is_object() || !there.is_object()) return Difference{path, here, there};
  const auto inside = [&](const std::string& name) { return path + "." + name; };
  for (const auto& [name, value] : here.items()) {
    if (!there.contains(name)) return Difference{inside(name), value, nullptr};
    if (auto found = first_difference(value, there[name], inside(name))) return found;
  }
  for (const auto& [name, value] : there.items())
    if (!here.contains(name)) return Difference{inside(name), nullptr, value};
  return std::nullopt;
}

Json parsed(const Metadata& metadata, const char* name) {
  const auto entry = metadata.find(name);
  if (entry == metadata.end()) return nullptr;
  Json value = Json::parse(entry->second, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(entry->second) : value;
}

}  // namespace

Metadata description_of(const spec::ExperimentSpec& given, const tasks::Signature& network) {
  spec::ExperimentSpec spec = given;
  Metadata out;
  const std::optional<data::NetworkInput> input = image_input_of(network);
  if (input) {
    if (input->channels > 0) spec.model.input[0] = input->channels;
    if (input->height > 0) spec.model.input[1] = input->height;
    if (input->width > 0) spec.model.input[2] = input->width;
    out[key::kLayout] = input->nhwc ? "NHWC" : "NCHW";
  }
  const data::TransformOptions transform = evaluation_loader_options(spec).transform;
  const auto for_each_channel = [&](std::vector<double> values, double otherwise) {
    if (values.empty()) values = {otherwise};
    if (values.size() == 1) values.resize(static_cast<size_t>(spec.model.channels()), values[0]);
    return text(values);
  };
  out[key::kMean] = for_each_channel(transform.mean, 0);
  out[key::kStd] = for_each_channel(transform.std, 1);
  out[key::kColorOrder] = spec.model.channels() == 1 ? "gray" : schema::enum_name(transform.order);
  out[key::kResize] = text(resize_json(transform));
  out[key::kExifOrientation] = spec.data.exif_orientation ? "true" : "false";
  out[key::kTask] = spec.task.name();
  schema::Section decoder;
  spec.task->describe_decoder(decoder);
  if (!decoder.fields().empty()) out[key::kDecoder] = text(json_of(decoder));
  return out;
}

void keep_description(Metadata& metadata, const spec::ExperimentSpec& spec, const tasks::Signature& network,
                      const std::set<std::string>& only) {
  const Metadata description = description_of(spec, network);
  for (const std::string& name : only) {
    metadata.erase(name);
    if (const auto entry = description.find(name); entry != description.end()) metadata[name] = entry->second;
  }
}

void keep_description(Metadata& metadata, const spec::ExperimentSpec& spec, const tasks::Signature& network) {
  keep_description(metadata, spec, network,
                   {key::kTask, key::kMean, key::kStd, key::kColorOrder, key::kLayout, key::kResize,
                    key::kExifOrientation, key::kDecoder});
}

void recognize_task(ModelFacts& model) {
  if (engine::standard_metadata(model.metadata).count(key::kTask) > 0) return;
  for (const tasks::TaskInfo& info : tasks::all_tasks()) {
    const std::unique_ptr<tasks::Task> task = info.make();
    if (!task->recognize(model.signature)) continue;
    model.metadata[key::kTask] = info.name;
    schema::Section decoder;
    task->describe_decoder(decoder);
    if (!decoder.fields().empty()) model.metadata[key::kDecoder] = text(json_of(decoder));
    return;
  }
}

std::string experiment_text(const ModelFacts& model, bool with_input) {
  try {
    const ModelInfo info = engine::read_model_info(model.metadata);  // checked
    const Metadata own = engine::standard_metadata(model.metadata);
    Json root = Json::object(), data = Json::object();
    if (!info.task.empty()) {
      root["task"] = info.task;
      if (!info.decoder.empty()) root[info.task] = Json::parse(info.decoder);
    }
    if (const std::optional<data::NetworkInput> input = image_input_of(model.signature)) {
      const spec::ExperimentSpec defaults;
      const auto size = [&](int64_t of_file, size_t i) { return of_file > 0 ? of_file : defaults.model.input.at(i); };
      root["model"] = {{"input", {size(input->channels, 0), size(input->height, 1), size(input->width, 2)}}};
    }
    if (with_input) {
      if (!info.mean.empty()) data["mean"] = info.mean;
      if (!info.std.empty()) data["std"] = info.std;
      if (info.color_order == "rgb" || info.color_order == "bgr") data["color_order"] = info.color_order;
      if (own.count(key::kResize) > 0) read_resize(parsed(own, key::kResize), data);
      if (own.count(key::kExifOrientation) > 0) data["exif_orientation"] = info.exif_orientation;
    }
    if (!data.empty()) root["data"] = data;
    return root.dump(1, ' ', false, Json::error_handler_t::replace);
  } catch (const UserError& e) {
    fail(model.path, ": ", e.what());
  } catch (const Json::exception& e) {
    fail(model.path, ": its metadata have values of the wrong type (", e.what(), ")");
  }
}

spec::ExperimentSpec experiment_of(const ModelFacts& model) {
  return spec::parse_experiment(experiment_text(model), model.path + " (metadata)", {.check_files = false});
}

std::vector<std::string> contradictions(const ModelFacts& model, const spec::ExperimentSpec& spec) {
  Metadata here, there;
  try {
    here = description_of(spec, model.signature);
    there = description_of(experiment_of(model), model.signature);
  } catch (const UserError&) {
    return {};
  }
  const Metadata carried = engine::standard_metadata(model.metadata);
  std::vector<std::string> out;
  const auto compare = [&](const char* name, const std::string& called) {
    if (carried.count(name) == 0) return;
    if (const auto found = first_difference(parsed(here, name), parsed(there, name), called))
      out.push_back(str(found->path, " is ", text(found->here), ", in the model ", text(found->there)));
  };
  compare(key::kTask, "task");
  compare(key::kMean, "data.mean"), compare(key::kStd, "data.std");
  compare(key::kColorOrder, "data.color_order");
  compare(key::kResize, "resize");
  compare(key::kExifOrientation, "data.exif_orientation");
  if (parsed(here, key::kTask) == parsed(there, key::kTask)) compare(key::kDecoder, spec.task.name());
  return out;
}

}  // namespace octet::app
