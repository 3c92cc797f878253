// Programs with products whose factors may become codes.
#pragma once
#include <random>

#include "dense/code_products.h"
#include "program_maker.h"

namespace octet::testing {

inline std::vector<float> random_floats(size_t count, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> out(count);
  for (float& v : out) v = uniform(generator);
  return out;
}

// One product of `op` on the magnitudes of x, with these weights.
inline dense::Program product_program(const std::string& op, const dense::Shape& weights,
                                      const dense::Attributes& attributes = {}, int64_t bias = 0) {
  ProgramMaker m;
  m.input("x");
  m.constant<float>("w", weights, random_floats(static_cast<size_t>(dense::element_count(weights)), 1));
  if (bias > 0) m.constant<float>("b", {bias}, random_floats(static_cast<size_t>(bias), 2));
  m.add("Abs", {"x"}, {"magnitudes"});
  m.add(op, bias > 0 ? std::vector<std::string>{"magnitudes", "w", "b"} : std::vector<std::string>{"magnitudes", "w"},
        {"y"}, attributes);
  m.output("y");
  return m.program;
}

// The same on codes: `params` of what the products read, scales of weights that differ from channel to channel.
inline dense::Program on_codes(dense::Program program, const dense::CodeParams& params) {
  std::map<int, dense::CodeParams> of_tensors;
  std::map<int, dense::CodedWeights> of_weights;
  dense::Memory memory;
  for (const dense::ProductForm& form : dense::float_products(program)) {
    of_tensors[form.x] = params;
    if (of_weights.count(form.weights) > 0) continue;
    dense::Shape shape;
    for (const auto& [value, tensor] : program.constants)
      if (value == form.weights) shape = tensor.shape();
    dense::CodedWeights& coded = of_weights[form.weights];
    coded.codes = memory.make<int8_t>(shape);
    const auto floats = random_floats(static_cast<size_t>(coded.codes.size()), 3, -127, 127);
    std::transform(floats.begin(), floats.end(), coded.codes.mutable_values<int8_t>().begin(),
                   [](float v) { return static_cast<int8_t>(v); });
    for (int64_t c = 0; c < shape[static_cast<size_t>(form.channel_axis)]; ++c)
      coded.scales.push_back(0.01f + 0.001f * static_cast<float>(c % 7));
  }
  dense::quantize_products(program, of_tensors, of_weights);
  return program;
}

// Of numbers [2, 3]: rows times a matrix, and a convolution and a transposed one of them as an image, all on codes.
inline dense::Program codes_program() {
  ProgramMaker m;
  m.input("x");
  m.constant<int64_t>("image_shape", {4}, {1, 1, 2, 3});
  m.constant<float>("w", {3, 4}, random_floats(12, 1));
  m.constant<float>("b", {4}, random_floats(4, 2));
  m.constant<float>("filters", {2, 1, 2, 2}, random_floats(8, 3));
  m.constant<float>("taps", {2, 1, 2, 1}, random_floats(4, 4));
  m.add("Abs", {"x"}, {"rows"});
  m.add("Gemm", {"rows", "w", "b"}, {"product"}, {{"transB", int64_t{0}}});
  m.add("Reshape", {"rows", "image_shape"}, {"image"});
  m.add("Conv", {"image", "filters"}, {"conv"},
        {{"pads", std::vector<int64_t>{1, 0, 0, 1}},
         {"strides", std::vector<int64_t>{1, 2}},
         {"dilations", std::vector<int64_t>{1, 1}},
         {"group", int64_t{1}}});
  m.add("ConvTranspose", {"conv", "taps"}, {"wide"}, {{"strides", std::vector<int64_t>{2, 1}}});
  m.output("product"), m.output("wide");
  return on_codes(m.program, {.scale = 0.01f, .zero_point = 3});
}

}  // namespace octet::testing
