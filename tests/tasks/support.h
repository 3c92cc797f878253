// The smallest networks and datasets that tests of tasks need.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/memory_dataset.h"
#include "ir/infer.h"

namespace octet::tasks {

// Scores of a 1x1x2 picture (a, b) are (a, b).
inline ir::Graph brighter_pixel() {
  ir::Graph g;
  ir::Value* x = g.add_input("input", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 1, 1, 2}});
  g.add_output(g.add(ir::OpKind::kFlatten, "logits", {x}));
  ir::infer_shapes(g);
  return g;
}

// Pictures of two gray pixels.
inline std::unique_ptr<data::Dataset> pictures_of_two(const std::string& pixels, std::vector<int> labels) {
  data::MemoryDataset::Contents contents;
  contents.height = contents.channels = 1;
  contents.width = 2;
  contents.class_names = {"left", "right", "third"};
  contents.parts.push_back({"pictures", pixels, 0, 2, static_cast<int64_t>(labels.size())});
  contents.labels = std::move(labels);
  return std::make_unique<data::MemoryDataset>(std::move(contents), 0);
}

}  // namespace octet::tasks
