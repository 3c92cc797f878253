#include "quant/layer_options.h"

#include "schema/schema.h"

namespace octet::quant {
namespace {

// An enumeration of which no value may be given.
template <typename E>
std::vector<std::pair<std::optional<E>, std::string>> or_as_for_all() {
  std::vector<std::pair<std::optional<E>, std::string>> out = {{std::nullopt, "auto"}};
  for (const schema::EnumName<E>& entry : enum_names(E{})) out.push_back({entry.value, entry.name});
  return out;
}

bool says_nothing(const LayerOptions& l) {
  return !l.says_of_activations() && l.any_activation_bits && l.any_weight_bits && !l.asymmetric && !l.weight_method &&
         !l.weights_per_tensor;
}

}  // namespace

void describe(schema::Section& s, LayerOptions& layer) {
  describe(s, layer.nodes);
  s.rule("name", [&layer]() -> std::string {
    if (std::string problem = problem_of(layer.nodes); !problem.empty()) return problem;
    return says_nothing(layer) ? "says nothing about these layers; give a setting beside it, as in method: max" : "";
  });
  const auto choice = [&](const char* key, auto& member, auto names, const char* help) {
    s.choice(key, member, std::move(names)).written_when([&member] { return member.has_value(); }).help(help);
  };
  choice("method", layer.method, or_as_for_all<CalibrationMethod>(), "Calibration of what they read.");
  s.field("percentile", layer.percentile)
      .above(0, 100)
      .unit("percent")
      .or_auto(layer.any_percentile)
      .written_when([&layer] { return !layer.any_percentile; })
      .help("As in calibration.");
  choice("skip_zeros", layer.skip_zeros,
         std::vector<std::pair<std::optional<bool>, std::string>>{
             {std::nullopt, "auto"}, {false, "false"}, {true, "true"}},
         "As in calibration.");
  const auto bits = [&](const char* key, int64_t& member, bool& any, const char* help) {
    const bool* is_any = &any;
    s.field(key, member).range(2, 8).or_auto(any).written_when([is_any] { return !*is_any; }).help(help);
  };
  bits("activation_bits", layer.activation_bits, layer.any_activation_bits, "Bits of what they read.");
  bits("weight_bits", layer.weight_bits, layer.any_weight_bits, "Bits of their weights.");
  choice("asymmetric", layer.asymmetric,
         std::vector<std::pair<std::optional<bool>, std::string>>{{std::nullopt, "auto"}, {false, "no"}, {true, "yes"}},
         "Whether what they read has a zero point, as in activations.");
  choice("weight_method", layer.weight_method, or_as_for_all<WeightMethod>(), "As weights.method.");
  choice("granularity", layer.weights_per_tensor,
         std::vector<std::pair<std::optional<bool>, std::string>>{
             {std::nullopt, "auto"}, {false, "channel"}, {true, "tensor"}},
         "As weights.granularity.");
}

CalibrationOptions with_layers(CalibrationOptions options, const LayerCalibration& layers) {
  for (const auto& [tensor, layer] : layers.activations) {
    const CalibrationOptions own = options.of_tensor(tensor);
    options.tensors.push_back({.name = node_called(tensor).name,
                               .method = layer.method.value_or(own.method),
                               .percentile = layer.any_percentile ? own.percentile : layer.percentile,
                               .skip_zeros = layer.skip_zeros.value_or(own.skip_zeros)});
  }
  return options;
}

WeightCalibrationOptions with_layers(WeightCalibrationOptions options, const LayerCalibration& layers) {
  options.methods.insert(layers.weights.begin(), layers.weights.end());
  return options;
}

}  // namespace octet::quant
