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

// UserError (exit 2) where the sizes of the outputs come up in a run, which no task reads.
void require_fixed_outputs(const ModelFile& file);

}  // namespace octet::app
