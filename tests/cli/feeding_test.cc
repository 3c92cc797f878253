// How commands feed images to networks, and read their scores: inputs with the channels last, fixed batches, Softmax at
// the end.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "cli/network_files.h"

namespace octet::test {
namespace {

using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using testing::HasSubstr;
using testing::Not;

// What lies between the average of every channel [N, 3, 1, 1] and the product with a constant [3, 3].
using Middle = std::function<ir::Value*(ir::Graph&, ir::Value*)>;

ir::Value* ints(ir::Graph& g, const std::string& name, const std::vector<int64_t>& values) {
  return g.add_constant(name, Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}
ir::Value* flatten(ir::Graph& g, ir::Value* x) {
  return g.add(OpKind::kFlatten, "flat", {x});
}

// The brighter a channel, the larger its score.
ir::Graph classifier(int64_t batch, bool channels_last, const Middle& middle = flatten, bool softmax = false) {
  ir::Graph g;
  ir::Value* x =
      g.add_input("x", {ir::DataType::kFloat32, channels_last ? Shape{batch, 8, 8, 3} : Shape{batch, 3, 8, 8}});
  if (channels_last) x = g.add(OpKind::kTranspose, "turned", {x}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  ir::Value* w = g.add_constant("w", Tensor::of<float>({3, 3}, std::vector<float>{8, 0, 0, 0, 8, 0, 0, 0, 8}), true);
  ir::Value* y =
      g.add(OpKind::kMatMul, softmax ? "logits" : "y", {middle(g, g.add(OpKind::kGlobalAveragePool, "pool", {x})), w});
  if (softmax) y = g.add(OpKind::kSoftmax, "y", {y}, {{"axis", int64_t{1}}});
  g.add_output(y);
  return g;
}

// All images in a row, with a number for each place of it, and back to four: right, but not to be proved.
ir::Value* there_and_back(ir::Graph& g, ir::Value* x) {
  ir::Value* row = g.add(OpKind::kReshape, "there", {x, ints(g, "row", {-1})});
  row = g.add(OpKind::kMul, "times", {row, g.add_constant("ones", Tensor::of<float>({12}, std::vector<float>(12, 1)))});
  return g.add(OpKind::kReshape, "back", {row, ints(g, "rows", {4, 3})});
}

class Feeding : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (!IsSkipped()) write_images();
  }
  // Lines of predictions, by LibTorch and by the engine; both must be the same.
  std::string infer(const std::string& name) const {
    expect(0, "compile " + name + ".onnx -o " + name + ".octet --force");
    const Outcome graph = octet("infer -e spec.yaml -m " + name + ".onnx --top 3 data");
    const Outcome engine = octet("infer -e spec.yaml -m " + name + ".octet --top 3 data");
    EXPECT_EQ(graph.code, 0) << graph.err;
    EXPECT_EQ(graph.out, engine.out) << engine.err;
    return graph.out;
  }
};

TEST_F(Feeding, QuietSaysOnlyWhatItWasAskedFor) {
  save(classifier(ir::kDynamic, false), "m.onnx");
  EXPECT_NE(octet("evaluate -e spec.yaml -m m.onnx").err, "");  // how far it is
  EXPECT_EQ(octet("evaluate -e spec.yaml -m m.onnx --quiet").err, "");
  // TAO's flag for the images.
  const Outcome named = octet("infer -e spec.yaml -m m.onnx -i data --quiet");
  EXPECT_EQ(named.out, octet("infer -e spec.yaml -m m.onnx data").out);
  EXPECT_EQ(named.err, "");
}

TEST_F(Feeding, ChannelsMayBeLast) {
  save(classifier(ir::kDynamic, false), "first.onnx");
  save(classifier(ir::kDynamic, true), "last.onnx");
  save(classifier(1, true), "last1.onnx");
  const std::string right = infer("first");
  EXPECT_EQ(std::count(right.begin(), right.end(), '\n'), 18);
  EXPECT_EQ(infer("last"), right);
  EXPECT_EQ(infer("last1"), right);
  for (const char* name : {"last", "last1"}) {
    const std::string q = std::string(name) + ".q";
    expect(0, std::string("calibrate -e spec.yaml -m ") + name + ".onnx -o " + q + ".onnx");
    expect(0, std::string("quantize --images data -m ") + name + ".onnx -o " + name + ".p.onnx");
    expect(0, "compile " + q + ".onnx -o " + q + ".octet");
    expect(0, "verify -e spec.yaml -m " + q + ".onnx --engine_file " + q + ".octet");
    EXPECT_THAT(octet(std::string("evaluate -e spec.yaml -m ") + name + ".onnx").out, HasSubstr("top-1 100.00 %"));
  }
  const Outcome train = octet("train -e spec.yaml -r results --set train.epochs=1 --set model.pretrained=" + folder_ +
                              "/last.onnx --set model.load_graph=true");
  EXPECT_EQ(train.code, 0) << train.err;
  EXPECT_THAT(octet("inspect results/model.onnx").out, HasSubstr("8, 8, 3]"));
}

TEST_F(Feeding, OtherInputsAreRefusedByName) {
  for (const Shape& shape : {Shape{1, 4, 8, 8}, Shape{1, 2, 8, 8}, Shape{1, 12}}) {
    ir::Graph g;
    ir::Value* x = g.add_input("picture", {ir::DataType::kFloat32, shape});
    g.add_output(g.add(OpKind::kFlatten, "y", {x}));
    save(std::move(g), "m.onnx");
    expect(0, "compile m.onnx -o m.octet --force");
    const std::string text = "input 'picture' is [1, " + std::to_string(shape[1]);
    std::vector<std::string> commands = {"quantize --images data -o q.onnx -m m.onnx",
                                         "infer -e spec.yaml -m m.octet data"};
    if (shape[1] == 4)
      commands.insert(commands.end(),
                      {"calibrate -e spec.yaml -o q.onnx -m m.onnx", "infer -e spec.yaml -m m.onnx data",
                       "evaluate -e spec.yaml -m m.octet", "verify -e spec.yaml -m m.onnx"});
    for (const std::string& command : commands) {
      const Outcome outcome = octet(command);
      EXPECT_EQ(outcome.code, 2) << command << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(text)) << command;
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
  }
  const Outcome spec = octet("calibrate -e spec.yaml --set model.input=[4,8,8] -m m.onnx -o q.onnx");
  EXPECT_EQ(spec.code, 2);
}

TEST_F(Feeding, FixedBatchesAreFedAsTheyAre) {
  save(classifier(ir::kDynamic, false), "free.onnx");
  const std::string right = infer("free");
  const auto squeezed = [](ir::Graph& g, ir::Value* x) {
    ir::Value* one = g.add(OpKind::kSqueeze, "one", {x, ints(g, "axes", {0})});
    return flatten(g, g.add(OpKind::kUnsqueeze, "again", {one, ints(g, "again_axes", {0})}));
  };
  const auto reshaped = [](ir::Graph& g, ir::Value* x) {
    return g.add(OpKind::kReshape, "flat", {x, ints(g, "shape", {1, -1})});
  };
  save(classifier(1, false, squeezed), "squeezed.onnx");
  save(classifier(1, false, reshaped), "reshaped.onnx");
  save(classifier(4, false, there_and_back), "four.onnx");
  for (const char* name : {"squeezed", "reshaped", "four"}) {
    EXPECT_EQ(infer(name), right) << name;
    EXPECT_THAT(octet(std::string("evaluate -e spec.yaml -m ") + name + ".onnx").out, HasSubstr("on 18 images"));
  }
  // No image is seen twice: the range is that of whole batches.
  const std::string calibrate = "calibrate -e spec.yaml --set quant.calibration.method=max --force -m ";
  const Outcome four = octet(calibrate + "four.onnx -o four.q.onnx --json four.json");
  EXPECT_EQ(four.code, 0) << four.err;
  EXPECT_THAT(four.err, HasSubstr("the network takes 4 images at a time: 2 of the 18 are left out"));
  const Outcome few = octet(calibrate + "four.onnx -o few.q.onnx --set quant.calibration.images=3");
  EXPECT_EQ(few.code, 1);
  EXPECT_THAT(few.err, HasSubstr("the network takes 4 images at a time, and there are 3"));
  expect(0, calibrate + "squeezed.onnx -o squeezed.q.onnx");
  expect(0, "verify -e spec.yaml -m squeezed.q.onnx");
  expect(0, "verify -e spec.yaml -m four.q.onnx");
}

// A sum over the batch of 1 is the image itself; over 8 images it would be eight times as large.
TEST_F(Feeding, CalibrationSeesTheBatchOfTheFile) {
  const auto summed = [](ir::Graph& g, ir::Value* x) {
    return flatten(g, g.add(OpKind::kReduceSum, "sum", {x, ints(g, "axes", {0})}, {{"keepdims", int64_t{1}}}));
  };
  save(classifier(1, false, summed), "sum.onnx");
  save(classifier(ir::kDynamic, false), "free.onnx");
  const auto range = [&](const std::string& name) {
    const Outcome outcome =
        octet("quantize --force --images data --method max -m " + name + ".onnx -o " + name + ".q.onnx --json -");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const size_t at = outcome.out.find("\"amax\"", outcome.out.find("\"flat\""));
    return at == std::string::npos ? -1 : std::atof(outcome.out.c_str() + at + 8);
  };
  EXPECT_GT(range("free"), 0);
  EXPECT_NEAR(range("sum"), range("free"), 1e-6);
}

TEST_F(Feeding, TrainingNeedsABatchOfItsOwn) {
  const auto reshaped = [](ir::Graph& g, ir::Value* x) {
    return g.add(OpKind::kReshape, "flat", {x, ints(g, "shape", {1, -1})});
  };
  save(classifier(1, false, reshaped), "reshaped.onnx");
  save(classifier(4, false, there_and_back), "four.onnx");
  const std::string train =
      "train -e spec.yaml --set train.epochs=2 --set model.load_graph=true --set model.pretrained=" + folder_;
  const Outcome one = octet(train + "/reshaped.onnx -r one");
  EXPECT_EQ(one.code, 0) << one.err;
  const Outcome four = octet(train + "/four.onnx -r four");
  EXPECT_EQ(four.code, 2);
  EXPECT_THAT(four.err, HasSubstr("input 'x' is float32[4, 3, 8, 8]"));
  EXPECT_FALSE(exists("four/model.onnx"));
}

TEST_F(Feeding, SoftmaxAtTheEndIsTakenOnce) {
  save(classifier(ir::kDynamic, false), "logits.onnx");
  save(classifier(ir::kDynamic, false, flatten, true), "softmax.onnx");
  EXPECT_EQ(infer("softmax"), infer("logits"));
  const auto loss = [&](const std::string& file) {
    const Outcome outcome = octet("evaluate -e spec.yaml -m " + file);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::atof(outcome.out.c_str() + outcome.out.find("loss ") + 5);
  };
  for (const char* file : {"softmax.onnx", "softmax.octet", "logits.octet"})
    EXPECT_NEAR(loss(file), loss("logits.onnx"), 1e-4) << file;
  // Cross-entropy of probabilities cannot fall below ln(e + 2) - 1 = 0.551 for three classes.
  const Outcome train = octet(
      "train -e spec.yaml -r results --set model.load_graph=true --set model.pretrained=" + folder_ + "/softmax.onnx");
  EXPECT_EQ(train.code, 0) << train.err;
  EXPECT_LT(loss("results/model.onnx"), 0.3);
  EXPECT_THAT(octet("inspect results/model.onnx").out,
              HasSubstr("Softmax"));  // what is saved is the network as it came
}

}  // namespace
}  // namespace octet::test
