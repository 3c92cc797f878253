// Labels by the names of the training classes, and the names in every file that a model becomes.
#include <gmock/gmock.h>

#include "cli/network_files.h"

namespace {

namespace fs = std::filesystem;
namespace ir = octet::ir;
using octet::test::NetworkFiles;
using octet::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

class ClassNames : public NetworkFiles {
 protected:
  void SetUp() override {
    NetworkFiles::SetUp();
    if (IsSkipped()) return;
    write_images();
    save_brightest("m.onnx", "");
  }

  // The class is the brightest channel: right on every picture of data/, when its labels are. `names`: of the classes.
  void save_brightest(const std::string& name, const std::string& names) const {
    ir::Graph g;
    g.opset = 19;
    ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, 8, 8}});
    x = g.add(ir::OpKind::kGlobalAveragePool, "pool", {x});
    x = g.add(ir::OpKind::kFlatten, "flatten", {x});
    const std::vector<float> weights = {20, 0, 0, 0, 20, 0, 0, 0, 20};
    x = g.add(ir::OpKind::kGemm, "fc", {x, g.add_constant("w", ir::Tensor::of<float>({3, 3}, weights), true)});
    g.add_output(x);
    if (!names.empty()) g.metadata["octet.class_names"] = names;
    save(std::move(g), name);
  }

  // data/FROM as FOLDER/TO.
  void copy_class(const std::string& from, const std::string& folder, const std::string& to) const {
    fs::create_directories(folder_ + "/" + folder);
    fs::copy(folder_ + "/data/" + from, folder_ + "/" + folder + "/" + to, fs::copy_options::recursive);
  }

  Outcome evaluate(const std::string& folder, const std::string& more = "") const {
    return octet("evaluate -e spec.yaml -m m.onnx --set data.val.path=" + folder + " " + more);
  }
};

TEST_F(ClassNames, AMissingClassMovesNoLabel) {
  EXPECT_THAT(evaluate("data").out, HasSubstr("top-1 100.00 %"));
  copy_class("a", "lacking", "a");
  copy_class("c", "lacking", "c");
  EXPECT_THAT(evaluate("lacking").out, HasSubstr("top-1 100.00 %"));
  const Outcome trained = octet(
      "train -e spec.yaml -r r --set data.val.path=lacking --set model.pretrained=m.onnx "
      "--set model.load_graph=true --set train.epochs=1 --set train.optimizer.lr=1e-6");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err, HasSubstr("val_top1 100.00"));
}

TEST_F(ClassNames, UnknownClassesAreRefused) {
  copy_class("a", "other", "a");
  copy_class("b", "other", "bb");
  const Outcome refused = evaluate("other");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("other"), HasSubstr("'bb'"), HasSubstr("of the training images")));
}

// The model's own order counts, whatever the spec's training images say.
TEST_F(ClassNames, TheModelsNamesComeFirst) {
  save_brightest("m.onnx", "c\nb\na\n");
  copy_class("a", "turned", "c");  // red pictures, called c
  EXPECT_THAT(evaluate("turned").out, HasSubstr("top-1 100.00 %"));
  save_brightest("m.onnx", "red\ngreen\nblue\n");
  const Outcome refused = evaluate("data");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("of the model"));
  save_brightest("m.onnx", "one\ntwo\nthree\nfour\n");
  EXPECT_THAT(evaluate("data").err, HasSubstr("names 4 classes, but has 3 scores"));
}

TEST_F(ClassNames, NamesGoWithTheModel) {
  const std::string settings =
      " --set model.pretrained=m.onnx --set model.load_graph=true --set train.epochs=1 "
      "--set train.optimizer.lr=1e-6 --set finetune.epochs=1 --set quant.calibration.images=6";
  expect(0, "train -e spec.yaml -r r" + settings);
  expect(0, "calibrate -e spec.yaml -m r/model.onnx -o calibrated.onnx");
  expect(0, "train -e spec.yaml -r q --stage qat -m calibrated.onnx" + settings);
  expect(0, "export -m q/model.onnx -o qdq.onnx");
  expect(0, "compile qdq.onnx -o engine.octet");
  fs::remove_all(folder_ + "/lone");
  copy_class("b", "lone", "pictures");
  write("plain.yaml", "model: {num_classes: 3, input: [3, 8, 8]}\n");  // says nothing of the data
  for (const char* const model : {"r/model.onnx", "calibrated.onnx", "q/model.onnx", "qdq.onnx", "engine.octet"}) {
    EXPECT_THAT(octet(std::string("inspect ") + model).out, HasSubstr("classes a, b, c\n")) << model;
    EXPECT_THAT(octet(std::string("infer -e plain.yaml lone/pictures/0.ppm -m ") + model).out, HasSubstr("0.ppm  b "))
        << model;
  }
  // A network that is trained on other classes says so, and gets their names.
  copy_class("a", "new", "x");
  copy_class("b", "new", "y");
  copy_class("c", "new", "z");
  const Outcome anew = octet("train -e spec.yaml -r n --set data.train.path=new --set data.val.path=new" + settings +
                             " --set model.pretrained=r/model.onnx");
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_THAT(anew.err, HasSubstr("class 'x'"));
  EXPECT_THAT(octet("inspect n/model.onnx").out, HasSubstr("classes x, y, z\n"));
}

}  // namespace
