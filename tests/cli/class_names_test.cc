// Labels by the names of the training classes; the names, and all that a model is run by, in every file that it
// becomes.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>

#include "cli/network_files.h"

namespace {

namespace fs = std::filesystem;
namespace ir = octet::ir;
using octet::test::NetworkFiles;
using octet::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
  // Brightness stays what it is, however it is written.
  const std::string input =
      " --set data.mean=[0.4,0.4,0.4] --set data.std=[0.5] --set data.resize=10 --set data.interpolation=bilinear";
  const std::string settings =
      " --set model.pretrained=m.onnx --set model.load_graph=true --set train.epochs=1 "
      "--set train.optimizer.lr=1e-6 --set finetune.epochs=1 --set quant.calibration.images=6" +
      input;
  expect(0, "train -e spec.yaml -r r" + settings);
  expect(0, "calibrate -e spec.yaml -m r/model.onnx -o calibrated.onnx" + input);
  expect(0, "train -e spec.yaml -r q --stage qat -m calibrated.onnx" + settings);
  expect(0, "export -m q/model.onnx -o qdq.onnx");
  expect(0, "compile qdq.onnx -o engine.octet");
  fs::remove_all(folder_ + "/lone");
  copy_class("b", "lone", "pictures");
  write("plain.yaml", "model: {num_classes: 3, input: [3, 8, 8]}\n");  // says nothing of the data
  expect(0, "quantize -m r/model.onnx --images data -o quantized.onnx");
  expect(0, "quantize -m r/model.onnx --images data -o again.onnx");
  EXPECT_EQ(read("quantized.onnx"), read("again.onnx"));
  expect(0, "quantize -m r/model.onnx --images data --equalize exact -o equalized.onnx");
  expect(0, "prune -m r/model.onnx -o pruned.onnx -pth 0");
  expect(0, "export -m r/model.onnx -o fp16.onnx --data_type fp16");
  expect(0, "compile -m qdq.onnx -o profiles.octet --profiles 1,2");
  expect(0, "compile -m qdq.onnx -o again.octet");
  EXPECT_EQ(read("engine.octet"), read("again.octet"));
  const std::string pictures = " lone/pictures '" OCTET_SOURCE_DIR "/docs/images/detection.jpg' -m ";
  for (const std::string model : {"r/model.onnx", "calibrated.onnx", "q/model.onnx", "qdq.onnx", "engine.octet",
                                  "quantized.onnx", "equalized.onnx", "pruned.onnx", "profiles.octet"}) {
    EXPECT_THAT(octet("inspect " + model).out, HasSubstr("classes a, b, c\n")) << model;
    const Outcome alone = octet("infer" + pictures + model);
    EXPECT_THAT(alone.out, AllOf(HasSubstr("0.ppm  b "), HasSubstr("detection.jpg  "))) << model << alone.err;
    if (!model.starts_with("q") && model != "engine.octet") continue;
    const Outcome told = octet("infer -e spec.yaml" + input + pictures + model);
    EXPECT_EQ(alone.out, told.out) << model;
    EXPECT_THAT(told.err, Not(HasSubstr("something else"))) << model;
  }
  EXPECT_THAT(octet("inspect fp16.onnx").out, HasSubstr("classes a, b, c\n"));
  // An experiment wins, and says so.
  const Outcome other = octet("infer -e plain.yaml lone/pictures/0.ppm -m engine.octet");
  EXPECT_THAT(other.out, HasSubstr("0.ppm  b "));
  EXPECT_THAT(other.err,
              AllOf(HasSubstr("plain.yaml"), HasSubstr("data.mean is [0.0,0.0,0.0], in the model [0.4,0.4,0.4]"),
                    HasSubstr("what plain.yaml says is taken")));
  EXPECT_THAT(octet("evaluate -m engine.octet --images data").out, HasSubstr("top-1 100.00 %"));
  EXPECT_THAT(octet("verify -m q/model.onnx --engine_file engine.octet --images data").out, HasSubstr("verified: "));
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

// Of a network that says nothing of itself.
TEST_F(ClassNames, FlagsSayWhatAModelDoesNot) {
  const Outcome silent = octet("infer -m m.onnx data/a/0.ppm");
  EXPECT_EQ(silent.code, 2);
  EXPECT_THAT(silent.err, AllOf(HasSubstr("m.onnx: does not say the mean and std of its input"), HasSubstr("--preset"),
                                HasSubstr("-e SPEC")));
  const std::string flags = " --mean 0.5 --std 0.25 --resize 8 --classes red,green,blue ";
  const Outcome told = octet("infer -m m.onnx data/b/0.ppm" + flags);
  EXPECT_THAT(told.out, HasSubstr("0.ppm  green ")) << told.err;
  EXPECT_THAT(told.err, Not(HasSubstr("stretched")));
  EXPECT_THAT(octet("infer -m m.onnx data/b/0.ppm --mean 0.5 --std 0.25").err, HasSubstr("stretched"));
  // What compile and quantize are told stays in the file.
  write("names.json", R"({"1": "green", "0": "red", "2": "blue"})");
  expect(0, "compile m.onnx -o m.octet" + flags);
  expect(0, "quantize -m m.onnx -o q.onnx --images data --mean 0.5 --std 0.25 --resize 8 --classes names.json");
  EXPECT_EQ(octet("infer -m m.octet data/b/0.ppm").out, octet("infer -m m.octet data/b/0.ppm" + flags).out);
  EXPECT_THAT(octet("infer -m m.octet data/b/0.ppm").out, HasSubstr("0.ppm  green "));
  EXPECT_THAT(octet("infer -m q.onnx data/c/0.ppm").out, HasSubstr("0.ppm  blue "));
  const Outcome other = octet("infer -m m.octet data/b/0.ppm --mean 0.25 --classes r,g,b");
  EXPECT_THAT(other.out, HasSubstr("0.ppm  g "));
  EXPECT_THAT(other.err, AllOf(HasSubstr("data.mean is [0.25,0.25,0.25], in the model [0.5,0.5,0.5]"),
                               HasSubstr("--classes names the classes otherwise")));
  EXPECT_EQ(octet("infer -m m.onnx data --mean 0 --std 1 --classes red,green,blue,pink").code, 2);
  EXPECT_EQ(octet("infer -m m.onnx data --mean 0 --std 1 --classes nothing.txt").code, 2);
}

// Names of other programs, and entries that are broken.
TEST_F(ClassNames, ForeignAndMalformedEntries) {
  const auto save_with = [&](const std::map<std::string, std::string>& metadata) {
    ir::Graph g;
    g.opset = 19;
    ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, 8, 8}});
    x = g.add(ir::OpKind::kGlobalAveragePool, "pool", {x});
    g.add_output(g.add(ir::OpKind::kFlatten, "flatten", {x}));
    g.metadata = metadata;
    save(std::move(g), "f.onnx");
  };
  save_with({{"names", "{0: 'red', 1: 'green', 2: \"sky's blue\"}"},
             {"stride", "1"},
             {"task", "classify"},
             {"imgsz", "[8, 8]"}});
  const Outcome foreign = octet("infer -m f.onnx data/c/0.ppm");
  EXPECT_THAT(foreign.out, HasSubstr("0.ppm  sky's blue ")) << foreign.err;
  expect(0, "compile f.onnx -o f.octet");
  EXPECT_EQ(octet("infer -m f.octet data/c/0.ppm").out, foreign.out);
  EXPECT_THAT(octet("inspect f.octet --json -").out, HasSubstr(R"("octet.input.std": "[1.0,1.0,1.0]")"));
  save_with({{"octet.input.mean", "[oops"}, {"octet.input.std", "[1]"}});
  const Outcome broken = octet("infer -m f.onnx data/c/0.ppm");
  EXPECT_NE(broken.code, 0);
  EXPECT_THAT(broken.err, AllOf(HasSubstr("f.onnx"), HasSubstr("'octet.input.mean' is no valid JSON: '[oops'")));
}

}  // namespace
