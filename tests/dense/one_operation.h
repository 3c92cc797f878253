// One operator alone, on tensors that a test says.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "program_maker.h"

namespace octet::testing {

class OneOperation {
 public:
  explicit OneOperation(const std::string& op, dense::Attributes attributes = {}, size_t outputs = 1)
      : op_(op), attributes_(std::move(attributes)), outputs_(outputs) {}

  OneOperation& attribute(const std::string& key, dense::Attribute value) {
    attributes_[key] = std::move(value);
    return *this;
  }
  template <typename T>
  OneOperation& with(dense::Shape shape, const std::vector<T>& values) {
    inputs_.push_back("input" + std::to_string(inputs_.size()));
    maker_.constant<T>(inputs_.back(), std::move(shape), values);
    return *this;
  }
  OneOperation& without() {
    inputs_.emplace_back();
    return *this;
  }

  dense::Program program() const {
    ProgramMaker made = maker_;
    std::vector<std::string> outputs;
    for (size_t i = 0; i < outputs_; ++i) outputs.push_back("output" + std::to_string(i));
    made.add(op_, inputs_, outputs, attributes_);
    for (const std::string& name : outputs) made.output(name);
    return made.program;
  }
  std::vector<dense::Tensor> run(int threads = 1) const {
    const dense::Program made = program();
    dense::validate(made);
    return dense::run(made, {}, {.threads = threads});
  }
  std::vector<float> floats(size_t output = 0) const {
    const dense::Tensor found = run().at(output);
    return {found.values<float>().begin(), found.values<float>().end()};
  }
  // What validate() says of it, before any run; what the run says.
  std::string refusal() const {
    return said([&] { dense::validate(program()); });
  }
  std::string failure() const {
    return said([&] { run(); });
  }

 private:
  template <typename Work>
  static std::string said(Work work) {
    try {
      work();
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  }

  std::string op_;
  dense::Attributes attributes_;
  size_t outputs_;
  ProgramMaker maker_;
  std::vector<std::string> inputs_;
};

}  // namespace octet::testing
