// What a person reads after a mistake. The messages are the interface: they are compared as a whole.
#include <gtest/gtest.h>

#include "base/error.h"
#include "spec/experiment.h"

namespace octet::spec {
namespace {

struct Case {
  const char* text;
  const char* message;
};

class SpecError : public testing::TestWithParam<Case> {};

TEST_P(SpecError, IsOneClearSentence) {
  try {
    parse_experiment(GetParam().text, "s.yaml", {.check_files = false});
    FAIL() << "accepted: " << GetParam().text;
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), GetParam().message);
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Keys, SpecError,
    testing::Values(
        Case{"train:\n  batch_size_per_gpu: 4\n  epoch: 3\n",
             "s.yaml:3:3: unknown key 'epoch' in 'train'; did you mean 'epochs'?"},
        Case{"tarin: {}\n", "s.yaml:1:1: unknown key 'tarin' in the file; did you mean 'train'?"},
        Case{"train: {learning_rate: 1}\n",
             "s.yaml:1:9: unknown key 'learning_rate' in 'train'; did you mean 'train.optimizer.lr'?"},
        Case{"train: {lr: 1}\n", "s.yaml:1:9: unknown key 'lr' in 'train'; it belongs in 'train.optimizer'"},
        Case{"finetune: {lr: 1}\n", "s.yaml:1:12: unknown key 'lr' in 'finetune'; it belongs in 'finetune.optimizer'"},
        Case{"train: {num_epochs: 1}\n", "s.yaml:1:9: unknown key 'num_epochs' in 'train'; did you mean 'epochs'?"},
        Case{"epochs: 1\n", "s.yaml:1:1: unknown key 'epochs' in the file; it belongs in 'train'"},
        Case{"quant: {zzzz: 1}\n",
             "s.yaml:1:9: unknown key 'zzzz' in 'quant'; known keys: enable_qat, qat_mode, heads, equalize, "
             "bias_correction, "
             "adaround, gptq, target, outer_bits, calibration, activations, weights, rules, exclude, only, inputs, "
             "layers"},
        Case{"data: {train: {format: idx}}\n",
             "s.yaml:1:15: the key 'path' is missing in 'data.train': Folder of the images; idx: folder with the usual "
             "file names, or the image file; imagenet_tfrecord: folder, file or a pattern like records/train-*."},
        Case{"train: {epochs: 1}\nmodel: {}\ntrain: {epochs: 2}\n",
             "s.yaml:3:1: the key 'train' was given before, at s.yaml:1:1"}));

INSTANTIATE_TEST_SUITE_P(
    Values, SpecError,
    testing::Values(
        Case{"train: {epochs: ten}\n", "s.yaml:1:17: 'train.epochs' takes an integer, found 'ten'"},
        Case{"train: {epochs: 1.5}\n", "s.yaml:1:17: 'train.epochs' takes an integer, found '1.5'"},
        Case{"train: {epochs: \"3\"}\n", "s.yaml:1:17: 'train.epochs' takes an integer, found the text '3'"},
        Case{"train: {epochs: 0}\n", "s.yaml:1:17: 'train.epochs' must be 1 to 100000, found 0"},
        Case{"train: {epochs: 99999999999999999999}\n",
             "s.yaml:1:17: 'train.epochs' must be 1 to 100000, found 99999999999999999999"},
        Case{"data: {train: 5}\n", "s.yaml:1:15: 'data.train' takes a section or list of sections, found '5'"},
        Case{"data: {train: [{format: idx, path: a}, {format: voc}]}\n",
             "s.yaml:1:40: the key 'path' is missing in 'data.train': Folder of the images; idx: folder with the usual "
             "file names, or the image file; imagenet_tfrecord: folder, file or a pattern like records/train-*."},
        Case{"data: {train: {format: voc, path: a, weight: 0}}\n",
             "s.yaml:1:46: 'data.train.weight' must be more than 0, at most 1000 (times an epoch), found 0"},
        Case{"data: {val: [{format: voc, path: a, weight: 2}]}\n",
             "s.yaml:1:13: 'data.val' has a weight; only training takes images more or less often than once"},
        Case{
            "data: {train: {format: voc, path: a}, val: {format: voc, path: b}, validation_fold: 0}\n",
            "s.yaml:1:85: 'data.validation_fold' is given, and data.val, too; validation images come from one of both"},
        Case{"data: {train: {format: voc, path: a, weight: 2}, sampling_mode: uniform}\n",
             "s.yaml:1:65: 'data.sampling_mode' does not look at the weights of the sources, and data.train has some; "
             "user_defined does"},
        Case{"data: {target_classes: [a], target_class_mapping: {b: c}}\n",
             "s.yaml:1:51: 'data.target_class_mapping' maps to none of data.target_classes"},
        Case{"data: {train: {format: idx, path: a, source_weight: 2}}\n",
             "s.yaml:1:53: 'data.train.source_weight' is for formats with objects in images; idx has none"},
        Case{"train: [1]\n", "s.yaml:1:8: 'train' is a section: expected keys, found a list"},
        Case{"train: 5\n", "s.yaml:1:8: 'train' is a section: expected keys, found '5'"},
        Case{"- a\n", "s.yaml:1:1: the file is a section: expected keys, found a list"},
        Case{"train: {optimizer: {lr: 0}}\n",
             "s.yaml:1:25: 'train.optimizer.lr' must be more than 0, at most 1000, found 0"},
        Case{"train: {optimizer: {lr: nan}}\n", "s.yaml:1:25: 'train.optimizer.lr' must be a finite number, found nan"},
        Case{"train: {optimizer: {nesterov: 1}}\n",
             "s.yaml:1:31: 'train.optimizer.nesterov' takes true or false, found '1'"},
        Case{"train: {precision: fp23}\n",
             "s.yaml:1:20: 'train.precision' is one of fp32, bf16, fp16, auto; found 'fp23'; did you mean 'fp32'?"},
        Case{"train: {schedule: {warmup: 5}}\n",
             "s.yaml:1:28: 'train.schedule.warmup' must be 0 to 1 (fraction of the training), found 5"},
        Case{"model: {input: [3, 224]}\n", "s.yaml:1:16: 'model.input' takes 3 values, found 2"},
        Case{"model: {input: {c: 3}}\n",
             "s.yaml:1:16: 'model.input' takes a list of integers or auto, found a section"},
        Case{"export: {opset: 12}\n", "s.yaml:1:17: 'export.opset' must be 13, 19, 20 or 21, found 12"},
        Case{"export: {target: tensorrt8}\n",
             "s.yaml:1:18: 'export.target' must be onnxruntime, openvino, tensorrt or tensorrt:VERSION as in "
             "tensorrt:8.6, found 'tensorrt8'"},
        Case{"quant: {exclude: conv1}\n", "s.yaml:1:18: 'quant.exclude' takes a list, found 'conv1'"}));

INSTANTIATE_TEST_SUITE_P(
    Together, SpecError,
    testing::Values(
        Case{"data: {mean: [0.1, 0.2]}\n",
             "s.yaml:1:14: 'data.mean' has 2 values, but model.input has 3 channels; give 1 or 3"},
        Case{"model: {input: [1, 28, 28]}\ndata: {color_order: bgr}\n",
             "s.yaml:2:21: 'data.color_order' is bgr, but model.input has 1 channels; it is of 3"},
        Case{
            "data: {preset: tf_slim_inception, resize: 256}\n",
            "s.yaml:1:7: 'data.central_fraction' does not go with resize, which cuts from the middle, too; give one of "
            "them"},
        Case{"data: {val: {format: cifar10, path: d, label_offset: 0}}\n",
             "s.yaml:1:54: 'data.val.label_offset' belongs to the format imagenet_tfrecord, not to cifar10"},
        Case{"train: {optimizer: {nesterov: true, momentum: 0}}\n",
             "s.yaml:1:31: 'train.optimizer.nesterov' needs a momentum above 0"},
        Case{"train: {schedule: {type: soft_start_annealing}}\n",
             "s.yaml:1:19: 'train.schedule.min_lr' must be more than 0 for the type soft_start_annealing"},
        Case{"train: {optimizer: {lr: 0.1}, schedule: {min_lr: 0.5}}\n",
             "s.yaml:1:50: 'train.schedule.min_lr' is 0.5, more than optimizer.lr, 0.1"},
        Case{"train: {schedule: {steps: [0.9, 0.5]}}\n",
             "s.yaml:1:27: 'train.schedule.steps' must be in ascending order"},
        Case{"data: {val: {format: cifar10, path: d, labels: l}}\n",
             "s.yaml:1:48: 'data.val.labels' belongs to the format idx, voc, kitti, coco or tfrecord; other formats "
             "hold their labels themselves"},
        Case{"quant: {exclude: [{}]}\n",
             "s.yaml:1:18: 'quant.exclude' takes items with exactly one of name, regex, op and chain, as in "
             "[\"head/*\", "
             "{op: Sigmoid}, {chain: Conv > Relu}]"},
        Case{"model: {load_graph: true}\n",
             "s.yaml:1:21: 'model.load_graph' needs model.pretrained, the ONNX file whose graph is meant"}));

TEST(SpecErrorOfOverride, NamesTheOverride) {
  try {
    parse_experiment("", "s.yaml", {.overrides = {"train.epoch=3"}, .check_files = false});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "--set train.epoch=3: unknown key 'epoch' in 'train'; did you mean 'epochs'?");
  }
}

}  // namespace
}  // namespace octet::spec
