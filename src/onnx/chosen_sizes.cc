#include "onnx/chosen_sizes.h"

#include <set>

#include "base/error.h"
#include "base/nearest.h"

namespace octet::onnx {
namespace {

std::string file_shape_text(const proto::ValueInfo& input) {
  std::string out = "[";
  for (size_t i = 0; i < input.shape->size(); ++i) {
    const proto::Dim& dim = (*input.shape)[i];
    out += (i > 0 ? ", " : "") + (dim.value >= 0          ? std::to_string(dim.value)
                                  : dim.parameter.empty() ? std::string("?")
                                                          : dim.parameter);
  }
  return out + "]";
}

const proto::ValueInfo& named_input(const std::vector<const proto::ValueInfo*>& inputs, const ir::InputShape& chosen) {
  std::vector<std::string> names;
  for (const proto::ValueInfo* input : inputs) {
    if (input->name == chosen.name || (chosen.name.empty() && inputs.size() == 1)) return *input;
    names.push_back(input->name);
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  if (chosen.name.empty())
    fail_usage("has ", inputs.size(), " inputs (", list, "), so --input-shape ", ir::input_shape_text(chosen),
               " has to name the one that it is of, as in NAME:", ir::input_shape_text(chosen));
  fail_usage("has no input '", chosen.name, "', of which --input-shape says the shape; its inputs are ",
             list.empty() ? "none" : list, did_you_mean(chosen.name, names));
}

}  // namespace

std::string ChosenSizes::symbol(const proto::ValueInfo& input, size_t axis, const proto::Dim& dim) {
  // Some exporters, Paddle's for one, call every size that they do not know alike.
  const std::string& name = dim.parameter;
  const bool unnamed = name.empty() || name == "?" || name == "-1" || name == "None" || name == "unk";
  return unnamed ? str(input.name, "/", axis) : name;
}

ChosenSizes::ChosenSizes(const std::vector<const proto::ValueInfo*>& inputs,
                         const std::vector<ir::InputShape>& chosen) {
  std::set<std::string> seen;
  for (const ir::InputShape& choice : chosen) {
    const proto::ValueInfo& input = named_input(inputs, choice);
    const std::string said = "--input-shape " + ir::input_shape_text(choice);
    if (!seen.insert(input.name).second)
      fail_usage("input '", input.name, "' gets two shapes, the second by ", said,
                 "; several are profiles, which octet compile makes");
    if (!input.shape) {
      shapeless_[input.name] = choice.shape;
      continue;
    }
    if (input.shape->size() != choice.shape.size())
      fail_usage("input '", input.name, "' is ", file_shape_text(input), ", of rank ", input.shape->size(), ", and ",
                 said, " has ", choice.shape.size(), choice.shape.size() == 1 ? " size" : " sizes");
    for (size_t i = 0; i < choice.shape.size(); ++i) {
      const int64_t size = choice.shape[i], own = (*input.shape)[i].value;
      if (size == ir::kDynamic || size == own || (own >= 0 && i == 0)) continue;
      if (own >= 0)
        fail_usage("input '", input.name, "' is ", file_shape_text(input), ", and ", said, " wants ", size, " for its ",
                   own, "; only the batch and sizes that the file leaves open can be chosen");
      const auto [known, is_new] = sizes_.try_emplace(symbol(input, i, (*input.shape)[i]), size);
      if (!is_new && known->second != size)
        fail_usage("the size '", known->first, "' of input '", input.name, "' is to be ", known->second, " and, by ",
                   said, ", ", size);
    }
  }
}

std::optional<std::vector<proto::Dim>> ChosenSizes::shape(const proto::ValueInfo& input) const {
  std::optional<std::vector<proto::Dim>> out = input.shape;
  if (const auto chosen = shapeless_.find(input.name); chosen != shapeless_.end()) {
    out.emplace();
    for (const int64_t size : chosen->second) out->push_back({.value = size, .parameter = {}});
  }
  if (!out) return out;
  for (size_t i = 0; i < out->size(); ++i) {
    proto::Dim& dim = (*out)[i];
    if (dim.value >= 0) continue;
    if (const auto known = sizes_.find(symbol(input, i, dim)); known != sizes_.end()) dim.value = known->second;
  }
  return out;
}

}  // namespace octet::onnx
