// The keys of the section `model` of an experiment.
#include "models/zoo.h"
#include "schema/schema.h"

namespace octet::models {

void describe(schema::Section& s, ModelOptions& model) {
  s.field("arch", model.arch)
      .known_elsewhere_as({"backbone", "network", "name"})
      .help("Network of the zoo; `octet models` lists them.");
  s.field("num_classes", model.num_classes)
      .range(1, 1'000'000)
      .known_elsewhere_as({"classes", "n_classes"})
      .help("Outputs of the classifier; must fit the data.");
  s.field("input", model.input)
      .range(1, 16'384)
      .length(3, 3)
      .unit("channels, height, width")
      .known_elsewhere_as({"input_shape", "input_size", "input_image_size"})
      .help("Shape of one image as the network sees it.");
  s.field("pretrained", model.pretrained)
      .input_path()
      .known_elsewhere_as({"pretrained_model_file", "pretrained_model_path", "weights"})
      .help("ONNX file with the starting weights, matched by name and shape; empty: random weights.");
  s.field("load_graph", model.load_graph)
      .help(
          "Train the graph of `pretrained` as it is (any ONNX network, also a pruned one) instead of building `arch`.");
  s.field("dropout", model.dropout)
      .range(-1, 0.99)
      .known_elsewhere_as({"dropout_rate"})
      .help("Dropout before the classifier; negative: that of the published network.");
  s.field("zero_init_residual", model.zero_init_residual)
      .help("Let every residual branch start at zero (last batch norm's scale 0).");
  s.rule("load_graph", [&model] {
    return model.load_graph && model.pretrained.empty() ? "needs model.pretrained, the ONNX file whose graph is meant"
                                                        : "";
  });
}

}  // namespace octet::models
