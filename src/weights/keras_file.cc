#include "weights/keras_file.h"

#include <map>
#include <set>

#include "base/error.h"
#include "weights/guarded.h"
#include "weights/hdf5_file.h"
#include "weights/hdf5_library.h"

namespace octet::weights {
namespace {

// A list that does not fit into an attribute (64 KiB) is cut into NAME0, NAME1 ...
std::optional<std::vector<std::string>> long_list(const Hdf5File& file, const std::string& path,
                                                  const std::string& name) {
  if (auto whole = file.texts(path, name)) return whole;
  std::optional<std::vector<std::string>> out;
  for (int i = 0; auto piece = file.texts(path, name + std::to_string(i)); ++i) {
    if (!out) out.emplace();
    out->insert(out->end(), piece->begin(), piece->end());
  }
  return out;
}

// `tensor` with axis i from its axis order[i].
ir::Tensor permuted(const ir::Tensor& tensor, const std::vector<size_t>& order) {
  ir::Shape shape;
  std::vector<size_t> strides(order.size(), 1), steps;
  for (size_t axis = order.size() - 1; axis > 0; --axis)
    strides[axis - 1] = strides[axis] * static_cast<size_t>(tensor.shape()[axis]);
  for (const size_t axis : order) {
    shape.push_back(tensor.shape()[axis]);
    steps.push_back(strides[axis]);
  }
  const std::span<const float> from = tensor.values<float>();
  return ir::Tensor::made<float>(shape, [&](std::span<float> to) {
    std::vector<int64_t> index(order.size(), 0);
    size_t at = 0;
    for (float& value : to) {
      value = from[at];
      for (size_t axis = order.size(); axis-- > 0;) {
        at += steps[axis];
        if (++index[axis] < shape[axis]) break;
        at -= steps[axis] * static_cast<size_t>(shape[axis]);
        index[axis] = 0;
      }
    }
  });
}

ir::Tensor reshaped(const ir::Tensor& tensor, const ir::Shape& shape) {
  const auto values = tensor.values<float>();
  return ir::Tensor::of<float>(shape, std::vector<float>(values.begin(), values.end()));
}

// Name and layout of Keras to ours.
std::pair<std::string, ir::Tensor> converted(const std::string& name, const ir::Tensor& tensor) {
  static const std::map<std::string, std::string> kNames = {{"bias", "bias"},
                                                            {"gamma", "weight"},
                                                            {"beta", "bias"},
                                                            {"moving_mean", "running_mean"},
                                                            {"moving_variance", "running_var"}};
  if (const auto found = kNames.find(name); found != kNames.end()) return {found->second, tensor};
  const size_t rank = tensor.shape().size();
  if (name == "kernel" && rank == 2) return {"weight", permuted(tensor, {1, 0})};
  if (name == "kernel" && rank == 4) return {"weight", permuted(tensor, {3, 2, 0, 1})};
  if (name == "depthwise_kernel" && rank == 4) {
    const ir::Tensor turned = permuted(tensor, {2, 3, 0, 1});
    const ir::Shape& s = turned.shape();
    return {"weight", reshaped(turned, {s[0] * s[1], 1, s[2], s[3]})};
  }
  return {name, tensor};
}

// "model/conv1/kernel:0" is the tensor "kernel" of layer "conv1".
struct WeightName {
  std::string layer, tensor;  // the layer may be empty
};

WeightName parse_weight_name(const std::string& text) {
  const std::string path = text.substr(0, text.find(':'));
  const size_t last = path.rfind('/');
  if (last == std::string::npos) return {"", path};
  const size_t before = path.rfind('/', last - 1);
  const size_t begin = before == std::string::npos || last == 0 ? 0 : before + 1;
  return {path.substr(begin, last - begin), path.substr(last + 1)};
}

checkpoint::NamedTensors read_layers(std::string_view bytes) {
  const Hdf5File file(bytes);
  const std::string root = file.has("/model_weights") ? "/model_weights" : "/";
  const auto layers = long_list(file, root, "layer_names");
  if (!layers && (file.has("/layers") || file.has("/_layer_checkpoint_dependencies")))
    fail(
        "it is a weights file of Keras 3, which does not name its layers; save the model in the HDF5 format of Keras 2 "
        "(model.save(\"NAME.h5\")), or export it to ONNX");
  if (!layers) fail("it holds no model of Keras: it has no list 'layer_names'");
  checkpoint::NamedTensors out;
  for (const std::string& layer : *layers) {
    const std::string group = (root == "/" ? "/" : root + "/") + layer;
    if (!file.has(group)) fail("it names the layer '", layer, "' and does not hold it");
    const auto names = long_list(file, group, "weight_names");
    if (!names) continue;
    // A layer's tensors share a scope, whose name a session may have numbered ("conv1_1"); a model's do not.
    std::set<std::string> scopes;
    for (const std::string& name : *names) scopes.insert(parse_weight_name(name).layer);
    for (const std::string& name : *names) {
      const WeightName parsed = parse_weight_name(name);
      auto [kind, tensor] = converted(parsed.tensor, file.floats(group + "/" + name));
      out[(scopes.size() > 1 && !parsed.layer.empty() ? parsed.layer : layer) + "." + kind] = std::move(tensor);
    }
  }
  return out;
}

}  // namespace

checkpoint::NamedTensors read_keras_weights(std::string_view bytes, const std::string& origin) {
  hdf5_symbol("H5open");  // here, so that not every reader loads the library anew
  return read_guarded([&] { return read_layers(bytes); }, origin);
}

}  // namespace octet::weights
