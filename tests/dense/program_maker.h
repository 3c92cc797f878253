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

}  // namespace octet::testing
