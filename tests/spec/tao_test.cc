// Specifications of NVIDIA TAO as experiments.
#include "spec/tao.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "tao/tree.h"

namespace octet::spec {
namespace {

using testing::HasSubstr;

const LoadOptions kQuiet{.check_files = false, .quiet = true};

std::string fixture(const std::string& name) {
  return read_file(OCTET_SOURCE_DIR "/tests/spec/specifications/" + name);
}
ExperimentSpec parse_tao(const std::string& text) {
  return parse_experiment(text, "s.txt", kQuiet);
}
std::string error_of(const std::string& text) {
  try {
    parse_tao(text);
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    return e.what();
  }
  return "(accepted)";
}

TEST(Tao, ReadsAWholeSpecification) {
  const ExperimentSpec spec = parse_tao(fixture("detectnet_v2_retrain_qat.txt"));
  EXPECT_EQ(spec.task.name(), "detectnet_v2");
  EXPECT_EQ(spec.model.input, (std::array<int64_t, 3>{3, 544, 960}));
  EXPECT_EQ(spec.model.num_classes, 3);
  EXPECT_EQ(spec.model.arch, "resnet18");
  EXPECT_EQ(spec.model.pretrained, "/models/pruned.hdf5");
  EXPECT_TRUE(spec.model.load_graph);
  ASSERT_EQ(spec.data.train.size(), 2U);
  EXPECT_EQ(spec.data.train[1].source_weight, 2);
  EXPECT_EQ(spec.train.batch_size_per_gpu, 16);
  EXPECT_EQ(spec.train.epochs, 120);
  EXPECT_EQ(spec.train.optimizer.type, train::OptimizerType::kAdam);
  EXPECT_EQ(spec.train.optimizer.lr, 5e-4);
  EXPECT_EQ(spec.train.optimizer.eps, 9.9e-9);
  EXPECT_EQ(spec.train.optimizer.weight_decay, 0);  // TAO's Adam has none; its penalty is the regularizer
  EXPECT_EQ(spec.finetune.optimizer.weight_decay, 0);
  EXPECT_EQ(spec.train.optimizer.betas, (std::vector<double>{0.9, 0.999}));
  EXPECT_EQ(spec.train.schedule.min_lr, 5e-6);
  EXPECT_EQ(spec.train.schedule.soft_start, 0.1);
  EXPECT_EQ(spec.train.schedule.annealing, 0.7);
  EXPECT_EQ(spec.train.checkpoint_interval, 10);
  EXPECT_EQ(spec.train.evaluate_interval, 10);
  EXPECT_EQ(spec.train.seed, 42);
  EXPECT_EQ(spec.data.seed, 42);
  EXPECT_EQ(spec.train.precision, train::Precision::kFloat32);
}

// The keys as they read, as the classes' options are of the task.
TEST(Tao, ReadsWhatIsSaidOfClasses) {
  const std::string yaml = to_yaml(parse_tao(fixture("detectnet_v2_retrain_qat.txt")));
  const tao::Tree tree(schema::parse_yaml(yaml, "y"));
  const auto text = [&](const std::string& path) { return tree.text(tao::parse_path(path)); };
  EXPECT_EQ(text("data.target_classes[0]"), "person");
  EXPECT_EQ(text("data.target_classes[2]"), "face");
  EXPECT_EQ(text("data.target_class_mapping.rider"), "person");
  EXPECT_EQ(text("data.validation_fold"), "0");
  EXPECT_EQ(text("data.train[1].labels"), "/data/tfrecords/more/*");
  EXPECT_EQ(text("data.train[1].path"), "/data/more");
  EXPECT_EQ(text("data.train[1].image_extension"), "jpg");
  EXPECT_EQ(text("data.train[1].source_weight"), "2");
  EXPECT_EQ(text("data.augment.spatial_augmentation.translate_max_x"), "8");
  EXPECT_EQ(text("data.augment.color_augmentation.hue_rotation_max"), "25");
  EXPECT_EQ(text("data.preprocessing.enable_auto_resize"), "true");
  EXPECT_EQ(text("model.layout"), "tao");
  EXPECT_EQ(text("model.all_projections"), "true");
  EXPECT_EQ(text("train.regularizer.type"), "l1");
  EXPECT_EQ(text("train.regularizer.weight"), "3e-09");
  EXPECT_EQ(text("train.schedule.type"), "soft_start_annealing");
  const std::string raster = "detectnet_v2.bbox_rasterizer.", cost = "detectnet_v2.cost_function.",
                    post = "detectnet_v2.postprocessing.", evaluation = "detectnet_v2.evaluation.";
  EXPECT_EQ(text(raster + "deadzone_radius"), "0.4");
  EXPECT_EQ(text(raster + "target_class_config.bag.cov_radius_x"), "1");
  EXPECT_EQ(text(cost + "enable_autoweighting"), "true");
  EXPECT_EQ(text(cost + "max_objective_weight"), "0.9999");
  EXPECT_EQ(text(cost + "target_class_config.face.class_weight"), "4");
  EXPECT_EQ(text(cost + "target_class_config.bag.bbox.initial_weight"), "10");
  EXPECT_EQ(text(cost + "target_class_config.bag.bbox.weight_target"), "1");
  EXPECT_EQ(text(post + "target_class_config.face.clustering_algorithm"), "nms");
  EXPECT_EQ(text(post + "target_class_config.person.dbscan_eps"), "0.265");
  EXPECT_EQ(text(evaluation + "target_class_config.bag.minimum_detection_ground_truth_overlap"), "0.5");
  EXPECT_EQ(text(evaluation + "target_class_config.face.evaluation_box_config.minimum_height"), "2");
  EXPECT_EQ(text(evaluation + "average_precision_mode"), "integrate");
  const std::string mask = "detectnet_v2.loss_mask_label_filter.";
  EXPECT_EQ(text(mask + "filters[0].source_classes[1]"), "crowd");
  EXPECT_EQ(text(mask + "filters[0].target_classes[0]"), "person");
  EXPECT_EQ(text(mask + "mask_multiplier"), "0");
}

TEST(Tao, ReadsEveryKindOfMask) {
  const std::string before = "cost_function_config {\n  target_classes {\n    name: \"car\"\n  }\n}\n";
  const auto mask = [&](const std::string& filter) {
    return before + "loss_mask_label_filter {\n  objective_label_filter_configs {\n    " + filter +
           "\n  }\n  preserve_ground_truth: true\n}\n";
  };
  const auto text = [](const std::string& specification, const std::string& key) {
    const tao::Tree tree(read_source(specification, "s.txt", "").tree);
    return tree.text(tao::parse_path("detectnet_v2.loss_mask_label_filter." + key));
  };
  const std::string sizes =
      mask("label_filter { bbox_dimensions_label_filter { max_height: 12 } } objective_names: [\"cov\", \"bbox\"]");
  EXPECT_EQ(text(sizes, "filters[0].bbox_dimensions.max_height"), "12");
  EXPECT_EQ(text(sizes, "filters[0].objectives[0]"), "coverage");
  EXPECT_EQ(text(sizes, "filters[0].objectives[1]"), "bbox");
  EXPECT_EQ(text(sizes, "preserve_ground_truth"), "true");
  const std::string crop = mask("label_filter { bbox_crop_label_filter { crop_right: 9 crop_bottom: 8.5 } }");
  EXPECT_EQ(text(crop, "filters[0].bbox_crop.crop_bottom"), "8.5");
  EXPECT_THAT(error_of(mask("objective_names: \"conv\"")),
              testing::HasSubstr("is one of cov, bbox; found the text 'conv'; did you mean 'cov'?"));
  EXPECT_THAT(error_of(mask("target_class_names: \"car\"")),
              testing::HasSubstr("exactly one of bbox_dimensions, bbox_crop and source_classes"));
}

// Of a field that TAO's default takes for 0 or false where it is absent.
TEST(Tao, WhatIsAbsentHasTaosDefaultWhereOctetsIsAnother) {
  const tao::Tree tree(read_source("evaluation_config {\n}\ntraining_config {\n}", "s.txt", "").tree);
  EXPECT_EQ(tree.text(tao::parse_path("detectnet_v2.evaluation.average_precision_mode")), "sample");
  EXPECT_EQ(tree.text(tao::parse_path("quant.enable_qat")), "false");
  EXPECT_EQ(tree.text(tao::parse_path("train.checkpoint_interval")), "10");
}

constexpr const char* kInference = R"(inferencer_config {
  target_classes: "car"
  target_classes: "cyclist"
  image_width: 1248
  image_height: 384
  batch_size: 16
  tensorrt_config { parser: ETLT backend_data_type: INT8 trt_engine: "/m.engine" }
}
bbox_handler_config {
  kitti_dump: true
  disable_overlay: true
  overlay_linewidth: 2
  classwise_bbox_handler_config {
    key: "car"
    value: {
      confidence_model: "mean_cov"
      output_map: "vehicle"
      bbox_color { R: 0 G: 255 B: 0 }
      clustering_config { coverage_threshold: 0.01 clustering_algorithm: NMS nms_iou_threshold: 0.3 }
    }
  }
  classwise_bbox_handler_config {
    key: "default"
    value: { confidence_model: "aggregate_cov" clustering_config { dbscan_eps: 0.25 dbscan_confidence_threshold: 0.9 } }
  }
}
)";

TEST(Tao, ReadsASpecificationForInference) {
  const SourceTree source = read_source(kInference, "s.txt", "");
  std::vector<std::string> unused;
  for (const tao::UnusedField& each : source.unused) unused.push_back(each.field);
  const std::string handler = "bbox_handler_config.", by_class = handler + "classwise_bbox_handler_config";
  EXPECT_THAT(unused, testing::UnorderedElementsAre("inferencer_config.tensorrt_config", handler + "overlay_linewidth",
                                                    by_class + ".bbox_color", by_class + "{car}.output_map"));
  const ExperimentSpec spec = parse_tao(kInference);
  EXPECT_EQ(spec.model.input, (std::array<int64_t, 3>{3, 384, 1248}));
  EXPECT_EQ(spec.model.num_classes, 2);
  EXPECT_EQ(spec.evaluate.batch_size, 16);
  EXPECT_TRUE(spec.infer.kitti);
  EXPECT_FALSE(spec.infer.draw);
  const tao::Tree tree(schema::parse_yaml(to_yaml(spec), "y"));
  const auto text = [&](const std::string& path) { return tree.text(tao::parse_path(path)); };
  const std::string all = "detectnet_v2.postprocessing.", car = all + "target_class_config.car.";
  EXPECT_EQ(text("data.target_classes[1]"), "cyclist");
  EXPECT_EQ(text(all + "dbscan_eps"), "0.25");
  EXPECT_EQ(text(all + "dbscan_confidence_threshold"), "0.9");
  EXPECT_EQ(text(all + "confidence_model"), "aggregate_cov");
  EXPECT_EQ(text(car + "confidence_model"), "mean_cov");
  EXPECT_EQ(text(car + "clustering_algorithm"), "nms");
  EXPECT_EQ(text(car + "nms_iou_threshold"), "0.3");
  EXPECT_EQ(text(car + "dbscan_eps"), "0.25");  // what the class leaves open holds for all
}

TEST(Tao, FaultsOfSpecificationsForInferenceHaveAPlace) {
  const auto with = [](std::string before, const std::string& after) {
    std::string out = kInference;
    out.replace(out.find(before), before.size(), after);
    return error_of(out);
  };
  EXPECT_THAT(with("overlay_linewidth", "overlay_line_width"),
              HasSubstr("s.txt:12:3: unknown field 'overlay_line_width' in 'bbox_handler_config'; did you mean "
                        "'overlay_linewidth'?"));
  EXPECT_THAT(with("key: \"car\"", "key: \"Car\""),
              HasSubstr("'bbox_handler_config' names the class 'Car', which inferencer_config calls 'car'"));
  EXPECT_THAT(with("\"mean_cov\"", "\"mean\""), HasSubstr("is one of aggregate_cov, mean_cov; found the text 'mean'"));
  EXPECT_THAT(with("batch_size: 16", "batch_size: 0"), HasSubstr("batch_size"));
}

constexpr const char* kClasses = R"(cost_function_config {
  target_classes { name: "person" }
  target_classes { name: "bag" }
}
)";

TEST(Tao, AnEntryForNoClassIsTakenOutWithAWord) {
  const SourceTree source = read_source(std::string(kClasses) + R"(
postprocessing_config {
  target_class_config { key: "person" value { clustering_config { dbscan_eps: 0.2 } } }
  target_class_config { key: "cyclist" value { clustering_config { dbscan_eps: 0.3 } } }
})",
                                        "s.txt", "");
  ASSERT_EQ(source.unused.size(), 1U);
  EXPECT_EQ(source.unused[0].field, "postprocessing_config{cyclist}");
  EXPECT_EQ(source.unused[0].location, "s.txt:8:30");
  const tao::Tree tree(source.tree);
  const schema::Node* entries = tree.find(tao::parse_path("detectnet_v2.postprocessing.target_class_config"));
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->entries.size(), 1U);
  EXPECT_EQ(entries->entries[0].key, "person");
}

// TAO's mAP of 0 that nobody explains.
TEST(Tao, ClassesThatNoLabelReachesAreErrors) {
  EXPECT_EQ(error_of(std::string(kClasses) + "dataset_config {\n  target_class_mapping { key: \"person\" value: "
                                             "\"Person\" }\n  target_class_mapping { key: \"bag\" value: \"bag\" }\n}"),
            "s.txt:2:26: the class 'person' of cost_function_config is the value of no target_class_mapping, so no "
            "object would have it; did you mean 'Person'?");
  EXPECT_EQ(error_of(std::string(kClasses) +
                     "bbox_rasterizer_config {\n  target_class_config { key: \"Bag\" value { cov_radius_x: 1 } }\n}"),
            "s.txt:6:30: 'bbox_rasterizer_config' names the class 'Bag', which cost_function_config calls 'bag'; names "
            "match exactly");
}

TEST(Tao, EnableQatMakesItTheQuantizationAwareTraining) {
  const ExperimentSpec qat = parse_tao(fixture("detectnet_v2_retrain_qat.txt"));
  EXPECT_EQ(qat.quant.enable_qat, true);
  EXPECT_EQ(qat.finetune.epochs, 120);
  EXPECT_EQ(qat.finetune.optimizer.lr, 5e-4);
  EXPECT_EQ(qat.finetune.schedule.min_lr, 5e-6);
  EXPECT_EQ(qat.finetune.batch_size_per_gpu, 16);
  const ExperimentSpec plain = parse_tao("training_config { num_epochs: 10 }");
  EXPECT_EQ(plain.quant.enable_qat, false);  // TAO's default
  EXPECT_EQ(plain.finetune.epochs, 1);
}

TEST(Tao, WritesWhatReadsBackAsTheSameExperiment) {
  const ExperimentSpec once = parse_tao(fixture("detectnet_v2_retrain_qat.txt"));
  const std::string text = to_tao(once, Stage::kQat);
  const ExperimentSpec twice = parse_tao(text);
  EXPECT_EQ(to_tao(twice, Stage::kQat), text);
  for (const KeyDifference& each : differences(once, twice))
    EXPECT_EQ(each.before, "absent") << each.key << ": " << each.before << " -> " << each.after;
  EXPECT_TRUE(lost_in_tao(once, Stage::kQat, text).empty());
}

TEST(Tao, IsTheSameInYaml) {
  const SourceTree source = read_source(fixture("detectnet_v2_retrain_qat.txt"), "s.txt", "");
  EXPECT_TRUE(source.is_tao);
  const ExperimentSpec text = parse_tao(fixture("detectnet_v2_retrain_qat.txt"));
  const ExperimentSpec yaml = parse_experiment(schema::write_yaml(source.tree), "s.yaml", kQuiet);
  EXPECT_EQ(to_yaml(yaml), to_yaml(text));
}

TEST(Tao, NamesWhatItsFormatCannotSay) {
  const ExperimentSpec spec =
      parse_experiment("task: detectnet_v2\ntrain: {schedule: {type: cosine}, clip_grad_norm: 3}", "s.yaml", kQuiet);
  std::vector<std::string> keys;
  for (const KeyDifference& each : lost_in_tao(spec, Stage::kFloat, to_tao(spec, Stage::kFloat)))
    keys.push_back(each.key);
  EXPECT_THAT(keys, testing::Contains("train.clip_grad_norm"));
}

TEST(Tao, HasNoneForClassification) {
  try {
    to_tao(ExperimentSpec(), Stage::kFloat);
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("for the task classification"));
  }
  try {
    parse_experiment("model_config {\n}", "s.txt", {.check_files = false, .default_task = "classification"});
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("none is read for the task classification"));
  }
}

TEST(Tao, OverridesAreKeysOfOctet) {
  const ExperimentSpec spec = parse_experiment("training_config {\n  num_epochs: 10\n}", "s.txt",
                                               {.overrides = {"train.epochs=3"}, .check_files = false});
  EXPECT_EQ(spec.train.epochs, 3);
}

struct Mistake {
  const char *text, *message;
};
class TaoError : public testing::TestWithParam<Mistake> {};

TEST_P(TaoError, IsNamedWithItsPlace) {
  EXPECT_EQ(error_of(GetParam().text), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    , TaoError,
    testing::Values(
        Mistake{"training_config {\n  num_epoch: 3\n}",
                "s.txt:2:3: unknown field 'num_epoch' in 'training_config'; did you mean 'num_epochs'?"},
        Mistake{"trainin_config {\n}",
                "s.txt:1:1: unknown field 'trainin_config' in the file; did you mean "
                "'training_config'?"},
        Mistake{"model_config {\n  enable_qat: true\n}",
                "s.txt:2:3: unknown field 'enable_qat' in 'model_config'; it belongs in 'training_config'"},
        Mistake{"evaluation_config {\n  average_precision_mode: INTEGRAL\n}",
                "s.txt:2:27: 'evaluation_config.average_precision_mode' is one of SAMPLE, INTEGRATE; found 'INTEGRAL'; "
                "did you mean 'INTEGRATE'?"},
        Mistake{"training_config {\n  batch_size_per_gpu: 0\n}",
                "s.txt:2:23: 'training_config.batch_size_per_gpu' must be 1 to 65536, found 0"},
        // What TAO leaves to Octet's own rules is found at the same places.
        Mistake{"training_config {\n  optimizer { adam { epsilon: 2 } }\n}",
                "s.txt:2:31: 'train.optimizer.eps' must be more than 0, at most 1, found 2"},
        Mistake{"model_config {\n  arch: \"resnett\"\n}",
                "s.txt:2:9: 'model_config.arch' is 'resnett'; Octet has resnet, vgg, darknet, mobilenet_v1, "
                "mobilenet_v2, squeezenet, googlenet or efficientnet_b0; did you mean 'resnet'?"},
        Mistake{"model_config {\n  arch: \"resnet\"\n  num_layers: 17\n}",
                "s.txt:3:15: 'model_config.num_layers' is 17, and the resnet of Octet has 10, 18, 34, 50 or 101"},
        Mistake{"augmentation_config {\n  preprocessing {\n    output_image_width: 960\n  }\n}",
                "s.txt:2:17: the field 'output_image_height' is missing in 'augmentation_config.preprocessing': Height "
                "of the network's input in pixels."}));

}  // namespace
}  // namespace octet::spec
