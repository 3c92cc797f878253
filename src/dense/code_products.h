// Products of a program that can be computed in integers: both factors are codes behind a DequantizeLinear, as in QDQ
// files.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "dense/program.h"

namespace octet::dense {

// A Conv or ConvTranspose over images, a Gemm, or a MatMul with a matrix, on weights that are constants.
struct ProductForm {
  size_t operation = 0;  // of program.operations: those of branches and loops are none
  int x = -1, weights = -1, bias = -1;
  int channel_axis = 0;  // of the weights: that of the output's channels
};

// The products that could be, whose weights are float32 constants and whose `x` the program itself computes. (What the
// plan hands over is the plan's to quantize.)
std::vector<ProductForm> float_products(const Program& program);

// How one tensor becomes codes.
struct CodeParams {
  float scale = 1;
  int32_t zero_point = 0;
  Type type = Type::kInt8;  // or kUint8
  bool operator==(const CodeParams&) const = default;
};

// The products that are, in QDQ form.
struct CodeProduct {
  ProductForm form;  // x: the floats that are quantized; weights: int8 codes, a constant; bias: a float constant, or -1
  CodeParams params;                 // of x
  std::vector<float> weight_scales;  // one for each channel; the zero points are 0
};
std::vector<CodeProduct> code_products(const Program& program);

// Weights as codes: int8, in the shape of the floats.
struct CodedWeights {
  Tensor codes;
  std::vector<float> scales;  // one for each index of the channel axis
};

// Puts float_products() into QDQ form: those whose weights are in `weights`. `params` has each of their x.
void quantize_products(Program& program, const std::map<int, CodeParams>& params,
                       const std::map<int, CodedWeights>& weights);

// Takes code_products() back to floats: their weights are those behind the codes, and nothing rounds what they read.
void dequantize_products(Program& program);

}  // namespace octet::dense
