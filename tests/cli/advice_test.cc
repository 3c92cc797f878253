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
  EXPECT_THAT(octet("compile tanh.onnx -o tanh.octet").err, ::testing::Not(HasSubstr("octet quantize")));
  ir::Graph one;
  one.add_output(convolution(one, one.add_input("x", {ir::DataType::kFloat32, Shape{1, 3, 8, 8}}), "only", 3));
  save(std::move(one), "one.onnx");
  EXPECT_THAT(octet("compile one.onnx -o one.octet").err, HasSubstr("octet quantize makes an INT8 network of it"));
  EXPECT_THAT(octet("quantize --images data -o q.onnx -m one.onnx --exclude only").err,
              HasSubstr("pooling that is not excluded"));
}

TEST_F(Advice, OnFreeSizesNamesTheFlag) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, Shape{ir::kDynamic, 3, ir::kDynamic, ir::kDynamic}});
  g.add_output(convolution(g, x, "only", 3));
  save(std::move(g), "free.onnx");
  const Outcome outcome = octet("compile free.onnx -o free.octet");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("as in --input-shape 1x3x224x224"));
  EXPECT_FALSE(exists("free.octet"));
  expect(0, "compile free.onnx -o free.octet --input-shape 1x3x224x224");
  expect(0, "bench free.onnx --runs 1 --threads 1 --input-shape 1x3x8x8");
  EXPECT_THAT(octet("compile free.onnx -o two.octet --profiles 1x3x8x8").err, HasSubstr("--input-shape 1x3x8x8"));
  expect(0, "compile free.onnx -o two.octet --input-shape Nx3x8x8 --input-shape x:Nx3x16x8 --profiles 1,4");
  EXPECT_THAT(octet("inspect two.octet").out, HasSubstr("profiles 1x3x8x8, 4x3x8x8, 1x3x16x8, 4x3x16x8"));
  EXPECT_THAT(octet("inspect two.octet --input-shape 1x3x8x8").err, HasSubstr("of the engine two.octet are fixed"));
  EXPECT_THAT(octet("inspect free.onnx --input-shape Nx3x6x4").out, HasSubstr("[?, 4, 6, 4]"));
  ir::Graph batch;
  batch.add_output(
      convolution(batch, batch.add_input("x", {ir::DataType::kFloat32, Shape{ir::kDynamic, 3, 8, 8}}), "only", 3));
  save(std::move(batch), "batch.onnx");
  EXPECT_THAT(octet("compile batch.onnx -o batch.octet").err, HasSubstr("--profiles 1,4,8"));
  expect(0, "compile batch.onnx -o batch.octet --force --profiles 1,4,8");
}

// No command takes a size that nobody said.
TEST_F(Advice, OnFreeSizesThatImagesGoThrough) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, Shape{ir::kDynamic, 3, ir::kDynamic, ir::kDynamic}});
  ir::Value* pooled = g.add(OpKind::kGlobalAveragePool, "pool", {convolution(g, x, "conv", 3)});
  ir::Value* w = g.add_constant("w", noise({4, 3}, 7), true);
  g.add_output(g.add(OpKind::kMatMul, "y", {g.add(OpKind::kFlatten, "flat", {pooled}), w}));
  save(std::move(g), "free.onnx");
  const std::string description = " --mean 0.5 --std 0.5 ";
  const std::string spec =
      "train: {epochs: 1, batch_size_per_gpu: 6, precision: fp32, threads: 1}\ndata:\n  train: "
      "{format: image_folder, path: data}\n";
  write("open.yaml", "model: {pretrained: free.onnx, load_graph: true, num_classes: 3}\n" + spec);
  write("said.yaml",
        "model: {pretrained: free.onnx, load_graph: true, num_classes: 3, input_shape: [Nx3x8x12]}\n" + spec);
  for (const std::string& command :
       {"quantize --images data -o q.onnx -m free.onnx" + description, "infer data -m free.onnx" + description,
        "evaluate --images data -m free.onnx" + description, std::string("train -e open.yaml -r r"),
        std::string("calibrate -e open.yaml -m free.onnx -o c.onnx")}) {
    const Outcome outcome = octet(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("nothing says the size of its images; give it, as in --input-shape Nx3x224x224"))
        << command;
  }
  expect(0, "quantize --images data -o q.onnx -m free.onnx --input-shape x:Nx3x8x12" + description);
  EXPECT_THAT(octet("inspect q.onnx").out, HasSubstr("[?, 3, 8, 12]"));
  expect(0, "infer data -m free.onnx --input_shape 1,3,8,12" + description);
  expect(0, "evaluate --images data -m free.onnx --input-shape Nx3x8x12" + description);
  // The size of the images alone leaves those of the file open.
  expect(0, "quantize --images data -o open.onnx -m free.onnx --set model.input=[3,8,12]" + description);
  EXPECT_THAT(octet("inspect open.onnx").out, HasSubstr("[?, 3, ?, ?]"));
  expect(0, "train -e said.yaml -r said");
  expect(0, "train -e open.yaml -r flag --input-shape 1x3x8x12");
  EXPECT_THAT(octet("inspect flag/model.onnx").out, HasSubstr("[1, 3, 8, 12]"));
  EXPECT_THAT(octet("calibrate -e said.yaml --set model.input=[3,8,8] -m free.onnx -o c.onnx").err,
              HasSubstr("and model.input says [3, 8, 8]"));
}

}  // namespace
}  // namespace octet::test
