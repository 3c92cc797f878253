#include "engine/prepared_program.h"

#include <new>

#include "base/error.h"
#include "dense/operators.h"
#include "engine/code_layer.h"

namespace octet::engine {
namespace {

constexpr const char* kLayer = "layer";

}  // namespace

PreparedProgram::PreparedProgram(const dense::Program& program, Isa isa) : program_(program) {
  try {
    for (const dense::CodeProduct& product : dense::code_products(program)) {
      dense::Operation& operation = program_.operations[product.form.operation];
      operation.attributes = {{kLayer, std::ssize(layers_)}};
      layers_.push_back(std::make_unique<const CodeLayer>(program, product, kernels::kernels(isa)));
      operation.op += " on codes", operation.inputs = {product.form.x};
    }
  } catch (const std::bad_alloc&) {
    fail("there is no memory for the weights of the program behind the plan");
  }
  dense::drop_unread(program_);
}

PreparedProgram::~PreparedProgram() = default;

int64_t PreparedProgram::weight_bytes() const {
  int64_t bytes = 0;
  for (const auto& layer : layers_) bytes += layer->weight_bytes();
  return bytes;
}

std::vector<dense::Tensor> PreparedProgram::run(const std::vector<dense::Tensor>& inputs,
                                                const dense::RunOptions& options) const {
  dense::RunOptions with_products = options;
  with_products.others = [&](const dense::Operation& operation, const std::vector<const dense::Tensor*>& from,
                             dense::Memory& memory) {
    const auto layer = static_cast<size_t>(dense::AttributeReader(operation).int_attribute(kLayer, 0));
    return layers_[layer]->run(*from[0], memory, options.threads);
  };
  return dense::run(program_, inputs, with_products);
}

}  // namespace octet::engine
