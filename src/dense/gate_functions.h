// What the gates of recurrent layers go through.
#pragma once
#include <string>
#include <vector>

#include "dense/tensor.h"

namespace octet::dense {

class GateFunction {
 public:
  void apply(float* x, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) x[i] = f_(x[i], alpha_, beta_);
  }

 private:
  friend std::vector<GateFunction> gate_functions(const std::vector<std::string>&, const std::vector<float>&,
                                                  const std::vector<float>&);
  float (*f_)(float x, float alpha, float beta) = nullptr;
  float alpha_ = 0, beta_ = 0;
};

// Those of ONNX's names. Functions that have an alpha or a beta take the next one of the list, or, where that has
// ended, the default of the operator of this name. UserError for other names and for values that are left.
std::vector<GateFunction> gate_functions(const std::vector<std::string>& names, const std::vector<float>& alphas,
                                         const std::vector<float>& betas);

}  // namespace octet::dense
