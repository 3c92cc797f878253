// Experiments for folders that nobody has described, and what `auto` stands for in them.
#include "spec/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "base/error.h"
#include "spec/experiment.h"

namespace octet::spec {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "octet folder, XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  // Images are counted, not decoded.
  void classes(const std::string& folder, int images = 10, const std::vector<std::string>& names = {"cat", "dog"}) {
    for (const std::string& name : names) {
      fs::create_directories(root_ / folder / name);
      for (int i = 0; i < images; ++i)
        std::ofstream(root_ / folder / name / (name + std::to_string(i) + ".jpg")) << "x";
    }
  }
  ExperimentSpec found(const std::string& arch = "resnet18") {
    experiment_ = experiment_of_folder(root_, arch);
    return parse_experiment(experiment_.yaml, "--data");
  }
  std::string refusal() {
    try {
      experiment_of_folder(root_, "resnet18");
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ExitCode::kUsage);
      return e.what();
    }
    return "taken";
  }

  fs::path root_;
  FolderExperiment experiment_;
};

TEST_F(Folder, FindsTheSplitsByAnyOfTheirNames) {
  for (const char* name : {"val", "valid", "Validation"}) {
    classes("train", 10, {"cat", "dog", "eel"});
    classes(name);
    classes("Test");
    const ExperimentSpec spec = found();
    EXPECT_EQ(spec.data.train.at(0).path, root_ / "train");
    EXPECT_EQ(spec.data.val.at(0).path, root_ / name);
    EXPECT_EQ(spec.data.test.at(0).path, root_ / "Test");
    EXPECT_EQ(spec.data.validation_fold, -1);
    EXPECT_EQ(spec.model.num_classes, 3);
    EXPECT_EQ(spec.model.input, (std::array<int64_t, 3>{3, 224, 224}));
    EXPECT_THAT(spec.data.transform.mean, ElementsAre(0.485, 0.456, 0.406));
    EXPECT_THAT(spec.data.transform.std, ElementsAre(0.229, 0.224, 0.225));
    EXPECT_THAT(experiment_.remarks, ElementsAre(HasSubstr("train/, " + std::string(name) + "/, Test/")));
    fs::remove_all(root_ / name);
  }
}

TEST_F(Folder, HoldsAPartOutWhereNothingValidates) {
  classes("");
  const ExperimentSpec spec = found("resnet20");
  EXPECT_EQ(spec.data.train.at(0).path, root_);
  EXPECT_EQ(spec.data.train.at(0).folds, 5);
  EXPECT_EQ(spec.data.validation_fold, 0);
  EXPECT_EQ(spec.model.num_classes, 2);
  EXPECT_EQ(spec.model.input, (std::array<int64_t, 3>{3, 32, 32}));
  EXPECT_EQ(spec.train.batch_size_per_gpu, 4) << "16 images are left";
  EXPECT_THAT(experiment_.remarks.at(0),
              AllOf(HasSubstr("2 class folders"), HasSubstr("4 of the 20 training images"), HasSubstr("validate")));
  EXPECT_THAT(experiment_.remarks.at(1), HasSubstr("no folder test"));
}

TEST_F(Folder, TheTestImagesNeverValidate) {
  classes("train", 1000);
  classes("test");
  const ExperimentSpec spec = found();
  EXPECT_EQ(spec.data.train.at(0).folds, 10);
  EXPECT_EQ(spec.data.validation_fold, 0);
  EXPECT_EQ(spec.data.test.at(0).path, root_ / "test");
  EXPECT_EQ(spec.train.batch_size_per_gpu, 64);
}

TEST_F(Folder, RefusesWhatItCannotRead) {
  EXPECT_THAT(refusal(), HasSubstr("has neither train/ nor a sub-folder for each of two classes"));
  classes("", 3, {"only"});
  EXPECT_THAT(refusal(), HasSubstr("(only only/)"));
  fs::remove_all(root_ / "only");
  classes("val");
  EXPECT_THAT(refusal(), HasSubstr("has val/ but no train/"));
  classes("train");
  classes("valid");
  EXPECT_THAT(refusal(), HasSubstr("has both val/ and valid/"));
  for (const auto& [folders, format] :
       {std::pair(std::vector<std::string>{"JPEGImages", "Annotations"}, "(voc)"),
        std::pair(std::vector<std::string>{"image_2", "label_2"}, "(kitti)"),
        std::pair(std::vector<std::string>{"train/images", "train/labels"}, "(images/ and labels/)")}) {
    fs::remove_all(root_);
    for (const std::string& each : folders) fs::create_directories(root_ / each);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(format), HasSubstr("detectnet_v2")));
  }
  fs::remove_all(root_);
  EXPECT_THAT(refusal(), HasSubstr("is not there"));
}

TEST_F(Folder, AutoStandsForWhatIsThere) {
  classes("");
  const std::string data = "data: {train: {format: image_folder, path: \"" + root_.string() + "\"}";
  const auto parse = [](const std::string& text, bool look = true) {
    return parse_experiment(text, "s.yaml", {.check_files = look});
  };
  const auto refusal_of = [&](const std::string& text) -> std::string {
    try {
      parse(text);
    } catch (const UserError& e) {
      return e.what();
    }
    return "taken";
  };
  ExperimentSpec spec = parse("model: {arch: resnet20, num_classes: auto, input: auto}\n" + data + ", std: auto}\n");
  EXPECT_EQ(spec.model.num_classes, 2);
  EXPECT_THAT(spec.data.transform.mean, ElementsAre(0));
  EXPECT_THAT(spec.data.transform.std, ElementsAre(0.2470, 0.2435, 0.2616));
  EXPECT_THAT(to_yaml(spec), Not(HasSubstr("auto}")));
  EXPECT_THAT(to_yaml(spec), HasSubstr("num_classes: 2\n"));
  spec = parse("model: {input: [1, 28, 28], num_classes: 7}\n" + data + ", mean: auto, std: auto}\n");
  EXPECT_THAT(spec.data.transform.mean, ElementsAre(0.449));
  // Without a look at files it stays open, and is written so.
  spec = parse("model: {num_classes: auto, input: auto}\ndata: {mean: auto}\n", false);
  EXPECT_TRUE(spec.model.auto_num_classes && spec.model.auto_input && spec.data.auto_mean);
  EXPECT_THAT(to_yaml(spec),
              AllOf(HasSubstr("num_classes: auto\n"), HasSubstr("input: auto\n"), HasSubstr("mean: auto\n")));
  EXPECT_THAT(refusal_of("model: {num_classes: auto}\n"), HasSubstr("there are none; add data.train"));
  EXPECT_THAT(refusal_of("model: {num_classes: automatic}\n"),
              HasSubstr("'model.num_classes' takes an integer or auto, found "));
  std::ofstream(root_ / "w.onnx") << "x";
  EXPECT_THAT(
      refusal_of("model: {input: auto, load_graph: true, pretrained: \"" + (root_ / "w.onnx").string() + "\"}\n"),
      HasSubstr("model.input: auto is that of a network of the zoo"));
}

}  // namespace
}  // namespace octet::spec
