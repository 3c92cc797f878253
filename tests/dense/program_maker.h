// Small programs for tests.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "dense/run.h"

namespace octet::testing {

// Names values as they come up: operations read and make them by name; "" is absent.
class ProgramMaker {
 public:
  dense::Program program;

  int value(const std::string& name) {
    if (name.empty()) return -1;
    const auto [it, is_new] = ids_.emplace(name, static_cast<int>(program.values.size()));
    if (is_new) program.values.push_back(name);
    return it->second;
  }
  void input(const std::string& name, dense::Type type = dense::Type::kFloat) {
    program.inputs.push_back({value(name), type});
  }
  template <typename T>
  void constant(const std::string& name, dense::Shape shape, const std::vector<T>& values) {
    program.constants.emplace_back(value(name), memory_.of<T>(std::move(shape), std::span<const T>(values)));
  }
  dense::Operation operation(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs, dense::Attributes attributes = {}) {
    dense::Operation out{op, outputs.at(0) + "_node", {}, {}, std::move(attributes), {}};
    for (const std::string& name : inputs) out.inputs.push_back(value(name));
    for (const std::string& name : outputs) out.outputs.push_back(value(name));
    return out;
  }
  void add(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
           dense::Attributes attributes = {}) {
    program.operations.push_back(operation(op, inputs, outputs, std::move(attributes)));
  }
  void output(const std::string& name, dense::Type type = dense::Type::kFloat) {
    program.outputs.push_back({value(name), type, false, {}});
  }

 private:
  std::map<std::string, int> ids_;
  dense::Memory memory_;
};

// Of each image [N, 1] of scores the places of those above 0.5, their scores sorted, and 1 where there are some.
inline dense::Program selecting_program() {
  ProgramMaker m;
  m.input("scores");
  m.constant<float>("half", {}, {0.5f});
  m.constant<int64_t>("flat", {1}, {-1});
  m.constant<int64_t>("zero", {1}, {0});
  m.constant<float>("none", {1}, {-1.0f});
  m.add("Greater", {"scores", "half"}, {"good"});
  m.add("NonZero", {"good"}, {"places"});
  m.add("Reshape", {"scores", "flat"}, {"list"});
  m.add("Squeeze", {"places", "zero"}, {"indices"});
  m.add("Gather", {"list", "indices"}, {"chosen"});
  m.add("Size", {"indices"}, {"count"});
  m.add("Reshape", {"count", "flat"}, {"counts"});
  m.add("TopK", {"chosen", "counts"}, {"sorted", "order"});
  m.add("Cast", {"counts"}, {"some"}, {{"to", int64_t{9}}});
  dense::Operation choice = m.operation("If", {"some"}, {"best"});
  choice.branches.resize(2);
  choice.branches[0].operations.push_back(m.operation("Gather", {"sorted", "zero"}, {"first"}));
  choice.branches[0].outputs = {m.value("first")};
  choice.branches[1].outputs = {m.value("none")};
  m.program.operations.push_back(choice);
  m.output("indices", dense::Type::kInt64);
  m.output("sorted");
  m.output("best");
  return m.program;
}

// Of numbers [2, 3], as an image of one row and as a sequence: the image read elsewhere, and the states of an LSTM and
// of a GRU.
inline dense::Program layers_program() {
  ProgramMaker m;
  m.input("x");
  m.constant<int64_t>("image_shape", {4}, {1, 1, 2, 3});
  m.constant<int64_t>("sequence_shape", {3}, {2, 1, 3});
  m.constant<float>("grid", {1, 1, 2, 2}, {-0.5f, 0.25f, 1.5f, -3});
  m.constant<float>("w", {2, 4, 3}, std::vector<float>(24, 0.5f));
  m.constant<float>("r", {2, 4, 1}, std::vector<float>(8, -0.25f));
  m.constant<float>("b", {2, 8}, std::vector<float>(16, 0.125f));
  m.constant<int64_t>("lengths", {1}, {1});
  m.constant<float>("gru_w", {1, 3, 3}, std::vector<float>(9, 0.5f));
  m.constant<float>("gru_r", {1, 3, 1}, std::vector<float>(3, -0.25f));
  m.add("Reshape", {"x", "image_shape"}, {"image"});
  m.add("GridSample", {"image", "grid"}, {"read"},
        {{"mode", std::string("cubic")}, {"padding_mode", std::string("reflection")}, {"align_corners", int64_t{0}}});
  m.add("Reshape", {"x", "sequence_shape"}, {"sequence"});
  m.add("LSTM", {"sequence", "w", "r", "b", "lengths"}, {"y", "y_h", "y_c"},
        {{"hidden_size", int64_t{1}},
         {"direction", std::string("bidirectional")},
         {"activations", std::vector<std::string>{"Sigmoid", "Tanh", "Elu", "HardSigmoid", "Relu", "Softsign"}},
         {"activation_alpha", std::vector<float>{0.5f, 0.25f}},
         {"clip", 3.0f}});
  m.add("GRU", {"sequence", "gru_w", "gru_r"}, {"z", "z_h"},
        {{"hidden_size", int64_t{1}}, {"layout", int64_t{1}}, {"linear_before_reset", int64_t{1}}});
  for (const char* name : {"read", "y", "y_h", "y_c", "z", "z_h"}) m.output(name);
  return m.program;
}

// Adds `count` times `step` to `start`; stops before a sum passes `most`. `sum` and the sums `partial`, one a row.
inline void add_counting_loop(ProgramMaker& m, const std::string& count, const std::string& start,
                              const std::string& step, const std::string& most) {
  dense::Operation loop = m.operation("Loop", {count, "", start}, {"sum", "partial"});
  loop.branches.resize(1);
  dense::Block& body = loop.branches[0];
  body.inputs = {m.value("iteration"), m.value("going"), m.value("before")};
  body.operations = {m.operation("Add", {"before", step}, {"after"}), m.operation("Add", {"after", step}, {"next"}),
                     m.operation("ReduceMax", {"next"}, {"largest"}, {{"keepdims", int64_t{0}}}),
                     m.operation("LessOrEqual", {"largest", most}, {"goes_on"})};
  body.outputs = {m.value("goes_on"), m.value("after"), m.value("after")};
  m.program.operations.push_back(loop);
}

// Of numbers [2, 3], as an image: layers of images, and sums of a Loop.
inline dense::Program images_program() {
  ProgramMaker m;
  m.input("x");
  m.constant<int64_t>("image_shape", {4}, {1, 1, 2, 3});
  m.constant<float>("w", {2, 1, 2, 2}, {1, -1, 0.5f, 0, 2, 1, 0, -0.5f});
  m.constant<float>("b", {2}, {0.5f, -0.5f});
  m.constant<float>("scales", {4}, {1, 1, 1.5f, 2});
  m.constant<float>("ones", {2}, {1, 1});
  m.constant<int64_t>("count", {}, {5});
  m.constant<float>("step", {}, {0.25f});
  m.constant<float>("most", {}, {2});
  m.add("Reshape", {"x", "image_shape"}, {"image"});
  m.add("Conv", {"image", "w", "b"}, {"conv"},
        {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"dilations", std::vector<int64_t>{1, 2}}, {"group", int64_t{1}}});
  m.add("MaxPool", {"conv"}, {"pool"},
        {{"kernel_shape", std::vector<int64_t>{2, 2}},
         {"strides", std::vector<int64_t>{2, 1}},
         {"ceil_mode", int64_t{1}}});
  m.add("AveragePool", {"pool"}, {"mean"},
        {{"kernel_shape", std::vector<int64_t>{2, 2}},
         {"auto_pad", std::string("SAME_UPPER")},
         {"count_include_pad", int64_t{1}}});
  m.add("ConvTranspose", {"mean", "w"}, {"wide"},
        {{"strides", std::vector<int64_t>{2, 1}}, {"output_padding", std::vector<int64_t>{1, 0}}});
  m.add("Resize", {"wide", "", "scales"}, {"large"},
        {{"mode", std::string("cubic")}, {"coordinate_transformation_mode", std::string("pytorch_half_pixel")}});
  m.add("InstanceNormalization", {"conv", "ones", "b"}, {"normal"}, {{"epsilon", 0.001f}});
  m.add("GlobalAveragePool", {"normal"}, {"global"});
  add_counting_loop(m, "count", "x", "step", "most");
  for (const char* name : {"large", "global", "sum", "partial"}) m.output(name);
  return m.program;
}

}  // namespace octet::testing
