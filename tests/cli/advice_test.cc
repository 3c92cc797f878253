// The advice of error sentences: what it names exists, and following it works.
#include <gmock/gmock.h>

#include "cli/network_files.h"

namespace octet::test {
namespace {

using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using testing::HasSubstr;

ir::Value* convolution(ir::Graph& g, ir::Value* x, const std::string& name, int64_t channels) {
  return g.add(OpKind::kConv, name, {x, g.add_constant(name + "_w", noise({4, channels, 3, 3}, 5, 0.3f), true)},
               {{"pads", std::vector<int64_t>(4, 1)}});
}

class Advice : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (!IsSkipped()) write_images();
  }
};

TEST_F(Advice, OfAModelThatIsQuantizedInPart) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, Shape{ir::kDynamic, 3, 8, 8}});
  ir::Value* first = convolution(g, x, "first", 3);
  ir::Value* q =
      g.add(OpKind::kFakeQuantize, "q",
            {first, g.add_constant("s", Tensor::scalar(0.1f)), g.add_constant("z", Tensor::scalar<int8_t>(0))});
  g.add_output(convolution(g, q, "second", 4));
  save(std::move(g), "part.onnx");
  const std::string quantize = "quantize --images data -o part.q.onnx -m ";
  const Outcome outcome = octet(quantize + "part.onnx");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("is quantized already, at least in part"));
  EXPECT_THAT(outcome.err, HasSubstr("'octet export --data_type fp32'"));
  expect(0, "export -m part.onnx --data_type fp32 -o float.onnx");
  expect(0, quantize + "float.onnx");
}

TEST_F(Advice, WhereThereIsNothingToQuantize) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, Shape{ir::kDynamic, 3, 8, 8}});
  g.add_output(g.add(OpKind::kFlatten, "y", {g.add(OpKind::kTanh, "tanh", {x})}));
  save(std::move(g), "tanh.onnx");
  for (const char* command : {"quantize --images data -o q.onnx -m tanh.onnx",
                              "calibrate -e spec.yaml --set model.num_classes=192 -o q.onnx -m tanh.onnx"}) {
    const Outcome outcome = octet(command);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err,
                HasSubstr("there is nothing to quantize: the network has no convolution, product, sum or pooling; "
                          "octet compile takes the float model as it is"));
  }
  EXPECT_FALSE(exists("q.onnx"));
  expect(0, "compile tanh.onnx -o tanh.octet");
  ir::Graph one;
  one.add_output(convolution(one, one.add_input("x", {ir::DataType::kFloat32, Shape{1, 3, 8, 8}}), "only", 3));
  save(std::move(one), "one.onnx");
  EXPECT_THAT(octet("quantize --images data -o q.onnx -m one.onnx --exclude only").err,
              HasSubstr("pooling that is not excluded"));
}

TEST_F(Advice, OnFreeSizesNamesProfiles) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, Shape{ir::kDynamic, 3, ir::kDynamic, ir::kDynamic}});
  g.add_output(convolution(g, x, "only", 3));
  save(std::move(g), "free.onnx");
  const Outcome outcome = octet("compile free.onnx -o free.octet");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("octet compile --profiles 1x3x224x224"));
  EXPECT_FALSE(exists("free.octet"));
  expect(0, "compile free.onnx -o free.octet --profiles 1x3x224x224");
  ir::Graph batch;
  batch.add_output(
      convolution(batch, batch.add_input("x", {ir::DataType::kFloat32, Shape{ir::kDynamic, 3, 8, 8}}), "only", 3));
  save(std::move(batch), "batch.onnx");
  EXPECT_THAT(octet("compile batch.onnx -o batch.octet").err, HasSubstr("--profiles 1,4,8"));
  expect(0, "compile batch.onnx -o batch.octet --force --profiles 1,4,8");
}

}  // namespace
}  // namespace octet::test
