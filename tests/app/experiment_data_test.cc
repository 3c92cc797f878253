// What is said of images before any work starts, and what stops it.
#include "app/experiment_data.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "data/image_write.h"
#include "scratch_folder.h"

namespace octet::app {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ExperimentDataTest : public ScratchFolder {
 protected:
  // `labels`: of each image a line of KITTI's labels for each "class x0".
  void kitti(const std::string& folder, const std::vector<std::vector<std::string>>& labels) {
    for (size_t i = 0; i < labels.size(); ++i) {
      std::string text;
      for (const std::string& name : labels[i]) text += name + " 0 0 0 1 1 9 9 0 0 0 0 0 0 0\n";
      write(str(folder, "/labels/", i, ".txt"), text);
      std::filesystem::create_directories(folder_ / folder / "images");
      data::write_png(folder_ / folder / "images" / str(i, ".png"),
                      {16, 16, 3, std::vector<uint8_t>(16 * 16 * 3, static_cast<uint8_t>(i))});
    }
  }
  std::string source(const std::string& folder, const std::string& more = "") {
    return str("{format: kitti, path: ", (folder_ / folder).string(), more, "}");
  }
  static spec::ExperimentSpec experiment(const std::string& data) {
    return spec::parse_experiment(
        "task: detectnet_v2\nmodel: {num_classes: 3, input: [3, 16, 16]}\ntrain: {batch_size_per_gpu: 1}\ndata: {" +
            data + "}\n",
        "spec.yaml");
  }
  struct Opened {
    DataStream train, val;
    std::string said;   // on standard error
    std::string error;  // what stopped it
  };
  static Opened open(const std::string& data) {
    Opened out;
    ::testing::internal::CaptureStderr();
    try {
      const spec::ExperimentSpec spec = experiment(data);
      out.train = open_training_data(spec, spec.train);
      out.val = open_validation_data(spec, out.train);
    } catch (const UserError& error) {
      out.error = error.what();
    }
    out.said = ::testing::internal::GetCapturedStderr();
    return out;
  }
  static std::vector<int64_t> labels(const data::Dataset& dataset) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < dataset.size(); ++i)
      for (const vision::Object& object : dataset.truth(i).objects) out.push_back(object.label);
    return out;
  }
};

TEST_F(ExperimentDataTest, SaysWhatThereIsAndWhatIsLeftOut) {
  kitti("a", {{"Car", "Van"}, {"Car", "Tram"}});
  const Opened opened =
      open("train: " + source("a") + ", target_classes: [van, bus, car], target_class_mapping: {Car: car, Van: van}");
  EXPECT_EQ(opened.error, "");
  EXPECT_THAT(opened.train.dataset->class_names(), ElementsAre("van", "bus", "car"));
  EXPECT_THAT(labels(*opened.train.dataset), ElementsAre(2, 0, 2));
  EXPECT_THAT(opened.said, AllOf(HasSubstr("data.train: 2 images, 3 objects (van 1, bus 0, car 2)"),
                                 HasSubstr("data.train: the class 'Tram' (1 objects) maps to no class"),
                                 HasSubstr("data.train: there is no object of the class 'bus'")));
}

TEST_F(ExperimentDataTest, NoObjectOfAnyClassStopsTraining) {
  kitti("a", {{"Car"}});
  EXPECT_THAT(open("train: " + source("a") + ", target_class_mapping: {car: car}").error,
              HasSubstr("leave nothing of it; the class 'Car' (1 objects) maps to no class that is learned and is left "
                        "out; 'car' differs only in case"));
  EXPECT_EQ(open("train: " + source("a", ", lower_case_classes: true") + ", target_class_mapping: {car: car}").error,
            "");
}

TEST_F(ExperimentDataTest, AnEmptyValidationSetStopsTraining) {
  kitti("a", {{"Car"}, {"Car"}, {"Van"}, {"Van"}});
  kitti("none", {{}, {}});
  kitti("other", {{"Pedestrian"}});
  const std::string train = "train: " + source("a");
  EXPECT_THAT(open(train + ", val: " + source("none")).error, HasSubstr("has no object in any of its 2 annotations"));
  EXPECT_THAT(open(train + ", val: " + source("other") + ", target_classes: [Car]").error,
              HasSubstr("leave nothing of it; the class 'Pedestrian'"));
  EXPECT_THAT(open(train + ", val: " + source("other")).error, HasSubstr("has a class that is not among those"));
  // A class that is in no validation image is measured by nothing.
  kitti("cars", {{"Car"}});
  EXPECT_THAT(open(train + ", val: " + source("cars")).said,
              HasSubstr("data.val: there is no object of the class 'Van'"));
}

TEST_F(ExperimentDataTest, AFoldValidatesAndDoesNotTrain) {
  kitti("a", {{"Car"}, {"Car"}, {"Car"}, {"Car"}, {"Car"}, {"Car"}});
  const Opened opened = open("train: " + source("a", ", folds: 3") + ", validation_fold: 1");
  EXPECT_EQ(opened.error, "");
  EXPECT_EQ(opened.train.dataset->size(), 4);
  EXPECT_EQ(opened.val.dataset->size(), 2);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 4; ++j) EXPECT_NE(opened.val.dataset->name(i), opened.train.dataset->name(j));
  EXPECT_THAT(opened.said, HasSubstr("fold 1 of data.train: 2 images"));
  EXPECT_THAT(open("train: " + source("a") + ", validation_fold: 1").error, HasSubstr("`folds` has to say"));
  // The same images are evaluated, and the others calibrate.
  const spec::ExperimentSpec spec = experiment("train: " + source("a", ", folds: 3") + ", validation_fold: 1");
  EXPECT_EQ(open_evaluation_data(spec).dataset->content_hash(), opened.val.dataset->content_hash());
  EXPECT_EQ(open_calibration_data(spec, 0).dataset->content_hash(), opened.train.dataset->content_hash());
}

TEST_F(ExperimentDataTest, CalibrationSeesImagesAsEvaluationOrAsTraining) {
  std::filesystem::create_directories(folder_ / "a/images");
  for (int i = 0; i < 4; ++i) {
    write(str("a/labels/", i, ".txt"), "Car 0 0 0 1 1 9 9 0 0 0 0 0 0 0\n");
    std::vector<uint8_t> pixels;
    for (size_t p = 0; p < size_t{16} * 16 * 3; ++p)
      pixels.push_back(static_cast<uint8_t>(p * 7 + static_cast<size_t>(i)));
    data::write_png(folder_ / "a/images" / str(i, ".png"), {16, 16, 3, pixels});
  }
  const auto pixels = [&](const std::string& transforms, int64_t batch) {
    spec::ExperimentSpec spec =
        experiment("train: " + source("a") + ", augment: {spatial_augmentation: {translate_max_x: 6}}");
    spec.quant.calibration.transforms = schema::parse_enum<quant::CalibrationTransforms>("transforms", transforms);
    spec.quant.calibration.batch_size = batch;
    const DataStream stream = open_calibration_data(spec, 0);
    stream.loader->start_epoch(0);
    std::vector<float> out;
    while (const auto read = stream.loader->next())
      out.insert(out.end(), read->images.data(), read->images.data() + read->images.size());
    return out;
  };
  const std::vector<float> plain = pixels("validation", 4), moved = pixels("training", 4);
  ASSERT_EQ(plain.size(), moved.size());
  EXPECT_NE(plain, moved);
  EXPECT_EQ(moved, pixels("training", 1));
}

TEST_F(ExperimentDataTest, SourcesShareAnEpochAsTheSpecSays) {
  kitti("a", {{"Car"}, {"Car"}, {"Car"}, {"Car"}, {"Car"}, {"Car"}});
  kitti("b", {{"Van"}, {"Van"}});
  const std::string both = "train: [" + source("a") + ", " + source("b", ", source_weight: 0.25") + "]";
  EXPECT_EQ(open(both + ", sampling_mode: proportional").train.loader->images_per_epoch(), 8);
  Opened uniform = open(both + ", sampling_mode: uniform");
  int64_t of_b = 0;
  uniform.train.loader->start_epoch(0);
  while (const auto batch = uniform.train.loader->next()) {
    of_b += batch->indices[0] >= 6;
    EXPECT_EQ(batch->truth[0].weight, batch->indices[0] >= 6 ? 0.25f : 1.0f);
  }
  EXPECT_EQ(of_b, 4);
}

}  // namespace
}  // namespace octet::app
