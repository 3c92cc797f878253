// A model file that a command runs, read once: before it is known what it is run as.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/class_names.h"
#include "engine/plan.h"
#include "ir/graph.h"
#include "ir/input_shape.h"
#include "tasks/signature.h"

namespace octet::app {

struct ModelFacts {
  std::string path;
  Metadata metadata;  // of the file, and what a command adds to it
  tasks::Signature signature;
};

struct ModelFile : ModelFacts {
  // One of both:
  std::optional<ir::Graph> network;  // of an ONNX file
  std::shared_ptr<const engine::Plan> plan;
};

// `shapes` are those of load_network(), for an ONNX file. UserError (exit 2) for another ending than .onnx or .octet.
ModelFile read_model_file(const std::string& path, const std::vector<ir::InputShape>& shapes = {});

tasks::Signature signature_of(const engine::Plan& plan);

// Whether the sizes of the outputs come up in a run: who suppresses by itself has as many rows as it found things.
bool has_open_outputs(const ModelFile& file);
// UserError (exit 2) where that is so and the input has more than one image: no row says which it is of.
void require_one_image(const ModelFile& file, int64_t batch);

}  // namespace octet::app
