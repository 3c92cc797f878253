#include "spec/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"

namespace octet::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ExperimentSpec parse(const std::string& text, std::vector<std::string> overrides = {}) {
  return parse_experiment(text, "s.yaml", {.overrides = std::move(overrides), .check_files = false});
}

TEST(Experiment, EmptyFileHasTheDefaultsOfTheStruct) {
  const ExperimentSpec spec = parse("");
  const ExperimentSpec defaults;
  EXPECT_EQ(spec.model.arch, defaults.model.arch);
  EXPECT_EQ(spec.train.epochs, defaults.train.epochs);
  EXPECT_EQ(spec.quant.calibration.images, defaults.quant.calibration.images);
  EXPECT_TRUE(spec.data.train.empty());
  EXPECT_TRUE(spec.data.calibration_sources().empty());
}

// Keys of the network that were added later: absent from what is written, so that hashes of experiments stay.
TEST(Experiment, NetworksHaveOptionsThatAreOnlyWrittenWhenTheyAreSet) {
  const std::string plain = to_yaml(parse("model: {arch: resnet18}"));
  for (const char* key : {"layout", "use_batch_norm", "use_pooling", "all_projections", "activation", "freeze_blocks",
                          "freeze_bn", "allow_loaded_model_modification"})
    EXPECT_EQ(plain.find(std::string(key) + ":"), std::string::npos) << key;
  const ExperimentSpec spec = parse(
      "model: {arch: resnet18, layout: tao, use_batch_norm: true, use_pooling: false, all_projections: true, "
      "activation: relu6, freeze_blocks: [0, 2], freeze_bn: true, pretrained: m.hdf5, "
      "allow_loaded_model_modification: true}");
  const ExperimentSpec again = parse(to_yaml(spec));
  for (const ExperimentSpec* each : {&spec, &again}) {
    EXPECT_EQ(each->model.layout, models::Layout::kTao);
    EXPECT_EQ(each->model.use_batch_norm, true);
    EXPECT_EQ(each->model.use_pooling, false);
    EXPECT_TRUE(each->model.all_projections);
    EXPECT_EQ(each->model.activation, models::Activation::kRelu6);
    EXPECT_EQ(each->model.freeze_blocks, (std::vector<int64_t>{0, 2}));
    EXPECT_TRUE(each->model.freeze_bn);
    EXPECT_TRUE(each->model.allow_loaded_model_modification);
  }
  EXPECT_FALSE(parse("model: {use_batch_norm: published}").model.use_batch_norm.has_value());
}

TEST(Experiment, ReadsEveryKindOfValue) {
  const ExperimentSpec spec = parse(R"(
task: classification
model: {arch: resnet20, num_classes: 10, input: [1, 28, 28]}
data:
  train: {format: idx, path: d, split: train, limit: 500}
  test: {format: cifar10, path: e, split: test}
  mean: 0.5
  augment: {flip: True, crop_padding: 2}
train:
  precision: bf16
  optimizer: {type: adamw, lr: 1e-3, betas: [0.8, 0.99], no_decay: [norm]}
  schedule: {type: step, steps: [0.5, 0.75, 0.9]}
  ema: {enable: true}
quant:
  activations: {averaging_constant: 0, unsigned: auto}
  rules: [resnet_v1, mobilenet]
  exclude: ["head/*", {op: Sigmoid}]
export: {opset: 13, target: "tensorrt:8.6"}
engine: {isa: avx2}
)");
  EXPECT_EQ(spec.model.input, (std::array<int64_t, 3>{1, 28, 28}));
  EXPECT_EQ(spec.data.train.at(0).format, "idx");
  EXPECT_EQ(spec.data.train.at(0).limit, 500);
  EXPECT_EQ(spec.data.test.at(0).format, "cifar10");
  EXPECT_EQ(data::paths_of(spec.data.calibration_sources()), data::paths_of(spec.data.train));
  EXPECT_EQ(data::paths_of(spec.data.evaluation_sources()), data::paths_of(spec.data.test));
  EXPECT_EQ(spec.data.transform.mean, std::vector<double>{0.5});
  EXPECT_TRUE(spec.data.transform.flip);
  EXPECT_EQ(spec.train.precision, train::Precision::kBFloat16);
  EXPECT_EQ(spec.train.optimizer.type, train::OptimizerType::kAdamW);
  EXPECT_EQ(spec.train.optimizer.lr, 1e-3);
  EXPECT_EQ(spec.train.optimizer.no_decay, std::vector{train::NoDecay::kNorm});
  EXPECT_EQ(spec.train.schedule.steps.size(), 3u);
  EXPECT_TRUE(spec.train.ema.enable);
  EXPECT_EQ(spec.quant.placement.unsigned_activations, true);
  using quant::PlacementRule;
  EXPECT_EQ(spec.quant.placement.rules, (std::vector{PlacementRule::kResNetV1, PlacementRule::kMobileNet}));
  ASSERT_EQ(spec.quant.placement.exclude.size(), 2u);
  EXPECT_EQ(spec.quant.placement.exclude[0].name, "head/*");
  EXPECT_EQ(spec.quant.placement.exclude[1].op, "Sigmoid");
  EXPECT_EQ(spec.export_options.opset, 13);
  EXPECT_EQ(spec.export_options.target, "tensorrt:8.6");
  EXPECT_EQ(spec.engine.isa, Isa::kAvx2);
}

TEST(Experiment, LayersOfQuantizationAreReadAndWritten) {
  const std::string text =
      "quant:\n  rules: [dla]\n  qat_mode: with_bn\n  calibration: {method: ema, averaging_constant: 0.5}\n"
      "  activations: {asymmetric: yes}\n  layers:\n"
      "    - {name: \"head/*\", method: percentile, percentile: 99.9, weight_bits: 6, asymmetric: no}\n"
      "    - {op: Gemm, granularity: tensor, weight_method: mse, skip_zeros: true, activation_bits: 4}\n";
  const ExperimentSpec spec = parse(text);
  const std::vector<quant::LayerOptions>& layers = spec.quant.placement.layers;
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].method, quant::CalibrationMethod::kPercentile);
  EXPECT_FALSE(layers[0].any_percentile);
  EXPECT_EQ(layers[0].weight_bits, 6);
  EXPECT_TRUE(layers[0].any_activation_bits);
  EXPECT_EQ(layers[0].asymmetric, false);
  EXPECT_EQ(layers[1].weights_per_tensor, true);
  EXPECT_EQ(layers[1].activation_bits, 4);
  EXPECT_EQ(spec.quant.qat_mode, quant::QatMode::kWithBn);
  EXPECT_TRUE(spec.quant.placement.asymmetric_activations);
  EXPECT_EQ(to_yaml(parse(to_yaml(spec))), to_yaml(spec));
  EXPECT_NE(to_yaml(spec).find("weight_method: mse"), std::string::npos);
  // What is not said is not written, so that the hashes of other experiments stay.
  for (const char* key : {"layers", "asymmetric", "qat_mode", "averaging_constant: 0.01"})
    EXPECT_EQ(to_yaml(parse("quant: {}")).find(key), std::string::npos) << key;
  EXPECT_THAT([] { parse("quant: {layers: [{name: a}]}"); },
              ThrowsMessage<UserError>(HasSubstr("says nothing about these layers")));
  EXPECT_THAT([] { parse("quant: {rules: [tao], equalize: exact}"); },
              ThrowsMessage<UserError>(HasSubstr("would then cut off elsewhere")));
}

TEST(Experiment, HeadsAreFloatAsTheTaskWantsThemButNotForADla) {
  EXPECT_FALSE(parse("task: detectnet_v2\n").quantization().placement.quantize_last_layer);
  EXPECT_TRUE(parse("task: detectnet_v2\nquant: {rules: [dla]}\n").quantization().placement.quantize_last_layer);
  EXPECT_FALSE(
      parse("task: detectnet_v2\nquant: {rules: [dla], heads: float}\n").quantization().placement.quantize_last_layer);
}

TEST(Experiment, SplitFollowsTheUse) {
  const ExperimentSpec spec = parse(R"(
data:
  train: {format: idx, path: d}
  val: {format: idx, path: d}
  test: {format: image_folder, path: d}
  calibration: {format: cifar10, path: d, split: test}
)");
  EXPECT_EQ(spec.data.train.at(0).split, "train");
  EXPECT_EQ(spec.data.val.at(0).split, "test");
  EXPECT_EQ(spec.data.test.at(0).split, "");
  EXPECT_EQ(spec.data.calibration.at(0).split, "test");
}

TEST(Experiment, FinetuneStartsFromTrain) {
  const ExperimentSpec spec =
      parse("finetune: {epochs: 7}\ntrain: {epochs: 40, batch_size_per_gpu: 32, optimizer: {lr: 0.2}}\n");
  EXPECT_EQ(spec.finetune.epochs, 7);
  EXPECT_EQ(spec.finetune.batch_size_per_gpu, 32);
  EXPECT_DOUBLE_EQ(spec.finetune.optimizer.lr, 0.002);
  EXPECT_EQ(spec.finetune.schedule.warmup, 0.0);
  EXPECT_EQ(parse("train: {epochs: 40}").finetune.epochs, 4);
  EXPECT_EQ(parse("train: {epochs: 3}").finetune.epochs, 1);
  EXPECT_EQ(&spec.schedule_for(Stage::kFloat), &spec.train);
  EXPECT_EQ(&spec.schedule_for(Stage::kQat), &spec.finetune);
  EXPECT_EQ(&spec.schedule_for(Stage::kControl), &spec.finetune);
}

TEST(Experiment, OverridesTakePartInDefaults) {
  const ExperimentSpec spec = parse("train: {epochs: 40}\n", {"train.epochs=20", "train.optimizer.lr=1"});
  EXPECT_EQ(spec.train.epochs, 20);
  EXPECT_EQ(spec.finetune.epochs, 2);
  EXPECT_DOUBLE_EQ(spec.finetune.optimizer.lr, 0.01);
}

TEST(Experiment, WrittenYamlReadsBackAsTheSame) {
  const ExperimentSpec spec = parse(R"(
data:
  train: {format: idx, path: "with space/and: colon", labels: "names \"1\".txt"}
  std: [0.1, 0.2, 0.30000000000000004]
quant: {exclude: [{op: Sigmoid}, "a*", "null"]}
train: {optimizer: {lr: 1e-7}, schedule: {steps: []}}
)");
  const std::string yaml = to_yaml(spec);
  EXPECT_EQ(to_yaml(parse(yaml)), yaml);
  EXPECT_EQ(parse(yaml).data.train.at(0).path, "with space/and: colon");
  EXPECT_EQ(parse(yaml).quant.placement.exclude.at(2).name, "null");
  EXPECT_EQ(parse(yaml).data.transform.std.at(2), 0.30000000000000004);
  EXPECT_EQ(spec_hash(parse(yaml)), spec_hash(spec));
}

TEST(Experiment, HashCoversWhatTheStageDependsOn) {
  const ExperimentSpec base = parse("train: {epochs: 5}");
  const ExperimentSpec other_quant = parse("{train: {epochs: 5}, quant: {calibration: {images: 7}}}");
  EXPECT_EQ(spec_hash(base, Stage::kFloat), spec_hash(other_quant, Stage::kFloat));
  EXPECT_EQ(spec_hash(base, Stage::kControl), spec_hash(other_quant, Stage::kControl));
  EXPECT_NE(spec_hash(base, Stage::kCalibration), spec_hash(other_quant, Stage::kCalibration));
  EXPECT_NE(spec_hash(base, Stage::kQat), spec_hash(other_quant, Stage::kQat));
  EXPECT_NE(spec_hash(base), spec_hash(other_quant));
  EXPECT_NE(spec_hash(base, Stage::kFloat), spec_hash(parse("train: {epochs: 6}"), Stage::kFloat));
  const ExperimentSpec other_threads = parse("{train: {epochs: 5, threads: 3}, data: {threads: 2}}");
  EXPECT_EQ(spec_hash(base), spec_hash(other_threads));
  EXPECT_TRUE(differences(base, other_threads, Stage::kFloat).empty());
  EXPECT_TRUE(differences(base, other_quant, Stage::kFloat).empty());
  EXPECT_EQ(differences(base, other_quant, Stage::kQat).size(), 1u);
  EXPECT_EQ(spec_hash(base, Stage::kFloat), spec_hash(other_threads, Stage::kFloat));
}

// What a preset sets is what is written; a key of its own wins over it, also where it says the default.
TEST(Experiment, PresetsOfPreprocessingAreResolved) {
  EXPECT_EQ(to_yaml(parse("")).find("preset"), std::string::npos);
  EXPECT_EQ(to_yaml(parse("")).find("interpolation"), std::string::npos);
  const ExperimentSpec spec = parse("data: {preset: tf_slim_vgg, interpolation: antialias, std: 0.5}");
  const ExperimentSpec again = parse(to_yaml(spec));
  for (const ExperimentSpec* each : {&spec, &again}) {
    const data::TransformOptions& transform = each->data.transform;
    EXPECT_EQ(each->data.preset, data::InputPreset::kTfSlimVgg);
    EXPECT_EQ(transform.resize, 256);
    EXPECT_EQ(transform.interpolation, data::Interpolation::kAntialias);
    EXPECT_EQ(transform.mean, (std::vector<double>{123.68 / 255, 116.78 / 255, 103.94 / 255}));
    EXPECT_EQ(transform.std, (std::vector<double>{0.5}));
  }
  EXPECT_NE(to_yaml(spec).find("interpolation: antialias"), std::string::npos);
  const data::TransformOptions caffe = parse("", {"data.preset=keras_caffe"}).data.transform;
  EXPECT_EQ(caffe.order, data::ChannelOrder::kBgr);
  EXPECT_EQ(caffe.interpolation, data::Interpolation::kBilinear);
  EXPECT_EQ(data::doubtful_normalization(caffe), "");
}

TEST(Experiment, InputFilesMustExist) {
  const auto folder = std::filesystem::temp_directory_path() / str("octet_spec_test_", ::getpid());
  std::filesystem::create_directories(folder / "images");
  const std::string file = (folder / "s.yaml").string();
  {
    std::ofstream(file) << "data:\n  train: {format: image_folder, path: " << (folder / "images").string() << "}\n";
    EXPECT_EQ(load_experiment(file).data.train.at(0).path, (folder / "images").string());
  }
  {
    std::ofstream(file) << "data:\n  train:\n    format: image_folder\n    path: /no/such/folder\n";
    try {
      load_experiment(file);
      FAIL();
    } catch (const UserError& e) {
      EXPECT_EQ(std::string(e.what()), file + ":4:11: 'data.train.path' names /no/such/folder, which does not exist");
      EXPECT_EQ(e.code(), ExitCode::kUsage);
    }
    EXPECT_NO_THROW(load_experiment(file, {.check_files = false}));
    // A pattern's folder must exist.
    std::ofstream(file) << "data: {train: {format: imagenet_tfrecord, path: /no/such/folder/train-*}}\n";
    EXPECT_THROW(load_experiment(file), UserError);
    std::ofstream(file) << "data: {train: {format: imagenet_tfrecord, path: " << (folder / "train-*").string()
                        << "}}\n";
    EXPECT_NO_THROW(load_experiment(file));
  }
  std::filesystem::remove_all(folder);
  try {
    load_experiment(file);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(e.what()).find(file), std::string::npos);
  }
}

TEST(Experiment, ExamplesAreValid) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OCTET_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_NO_THROW(load_experiment(entry.path().string(), {.check_files = false})) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 2);
}

TEST(Experiment, ColorsAreChangedWhereTheSpecSaysSo) {
  const ExperimentSpec plain = parse("data: {augment: {flip: true}}");
  EXPECT_FALSE(plain.data.transform.color.has_value());
  EXPECT_EQ(to_yaml(plain).find("color"), std::string::npos);  // so that hashes of older experiments stay
  const ExperimentSpec spec = parse("data: {augment: {flip: true, color: {hue: 0.1, contrast: 0.25}}}");
  ASSERT_TRUE(spec.data.transform.color.has_value());
  EXPECT_EQ(spec.data.transform.color->hue, 0.1);
  EXPECT_EQ(spec.data.transform.color->contrast, 0.25);
  EXPECT_EQ(spec.data.transform.color->saturation, 0);
  EXPECT_EQ(spec_hash(parse(to_yaml(spec))), spec_hash(spec));
  EXPECT_NE(spec_hash(plain), spec_hash(spec));
}

TEST(Experiment, SeveralSourcesOfImages) {
  const std::string first = "{format: idx, path: a}", second = "{format: kitti, path: b, split: auto, weight: 2.5}";
  const ExperimentSpec spec = parse("data: {train: [" + first + ", " + second + "], val: [" + first + "]}");
  ASSERT_EQ(spec.data.train.size(), 2u);
  EXPECT_EQ(spec.data.train[0].split, "train");
  EXPECT_EQ(spec.data.train[0].weight, 1);
  EXPECT_EQ(spec.data.train[1].path, "b");
  EXPECT_EQ(spec.data.train[1].split, "");
  EXPECT_EQ(spec.data.train[1].weight, 2.5);
  EXPECT_EQ(data::paths_of(spec.data.train), "a, b");
  EXPECT_EQ(to_yaml(parse(to_yaml(spec))), to_yaml(spec));
  EXPECT_TRUE(parse("data: {train: []}").data.train.empty());

  // One source is written as ever, so that experiments keep their hash.
  const ExperimentSpec one = parse("data: {train: " + first + "}"), listed = parse("data: {train: [" + first + "]}");
  EXPECT_EQ(spec_hash(one), spec_hash(listed));
  EXPECT_EQ(to_yaml(one).find("train:\n    format: idx\n    path: a\n    weight:"), std::string::npos);
  EXPECT_NE(to_yaml(one).find("  train:\n    format: idx\n    path: a\n"), std::string::npos) << to_yaml(one);

  const ExperimentSpec other = parse("data: {train: [" + first + ", {format: kitti, path: c}], val: [" + first + "]}");
  std::vector<std::string> keys;
  for (const KeyDifference& d : differences(spec, other, Stage::kFloat)) keys.push_back(d.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"data.train[1].path", "data.train[1].weight"}));
}

TEST(Experiment, ReferenceIsUpToDate) {
  EXPECT_EQ(read_file(OCTET_SOURCE_DIR "/docs/spec.md"), reference_markdown())
      << "run: octet spec --markdown > docs/spec.md";
}

TEST(Experiment, SectionHelpKnowsItsSections) {
  const std::string text = section_help("train.optimizer");
  EXPECT_NE(text.find("momentum: number; default 0.9; 0 to 1"), std::string::npos) << text;
  EXPECT_EQ(text.find("epochs"), std::string::npos);
  try {
    section_help("train.optimzer");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'train.optimizer'?"), std::string::npos);
  }
}

TEST(Experiment, TheChosenTaskAloneHasASection) {
  const ExperimentSpec spec = parse("task: detectnet_v2\ndetectnet_v2: {stride: 8}\n");
  EXPECT_EQ(spec.task.name(), "detectnet_v2");
  const std::string yaml = to_yaml(spec);
  EXPECT_NE(yaml.find("\ndetectnet_v2:\n  stride: 8\n"), std::string::npos) << yaml;
  EXPECT_EQ(yaml.find("classification"), std::string::npos) << "options of tasks that are not used";
  const ExperimentSpec copy = spec;
  EXPECT_EQ(to_yaml(copy), yaml);
  EXPECT_NE(spec_hash(spec, Stage::kFloat), spec_hash(parse("task: detectnet_v2"), Stage::kFloat));
  try {
    parse("detectnet_v2: {stride: 8}\n");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("this experiment is for classification"), std::string::npos) << e.what();
  }
}

TEST(Experiment, TheCommandLineNamesTheTaskWhereTheFileDoesNot) {
  const auto task = [](const std::string& text) {
    return parse_experiment(text, "s.yaml", {.check_files = false, .default_task = "detectnet_v2"}).task.name();
  };
  EXPECT_EQ(task(""), "detectnet_v2");
  EXPECT_EQ(task("model: {num_classes: 3}"), "detectnet_v2");
  EXPECT_EQ(task("task: classification"), "classification");
}

TEST(Experiment, SplitsOfFoldersHaveAnyName) {
  const auto split = [](const std::string& source) {
    return parse("data: {val: {" + source + "}}").data.val.at(0).split;
  };
  EXPECT_EQ(split("format: voc, path: d, split: val"), "val");
  EXPECT_EQ(split("format: idx, path: d"), "test");
  EXPECT_EQ(split("format: idx, path: d, split: auto"), "test");
  EXPECT_EQ(split("format: image_folder, path: d, split: auto"), "");
  EXPECT_THROW(split("format: idx, path: d, split: val"), UserError);
  EXPECT_THROW(split("format: voc, path: d, split: ../val"), UserError);
}

TEST(Experiment, StagesHaveNames) {
  for (const Stage stage : {Stage::kFloat, Stage::kCalibration, Stage::kQat, Stage::kControl})
    EXPECT_EQ(parse_stage(stage_name(stage)), stage);
  EXPECT_THROW(parse_stage("quat"), UserError);
}

}  // namespace
}  // namespace octet::spec
