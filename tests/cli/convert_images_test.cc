// Images with a class as ImageNet's records, from the command line to the accuracy that is measured with them.
#include <gmock/gmock.h>

#include "cli/network_files.h"

namespace {

namespace ir = octet::ir;
using octet::test::NetworkFiles;
using octet::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

class ConvertImages : public NetworkFiles {
 protected:
  void SetUp() override {
    Cli::SetUp();  // engines need no LibTorch
    write_images();
  }
  // An engine that finds the brightest channel, which is the class of the pictures in data/.
  void save_brightest() const {
    ir::Graph g;
    g.opset = 19;
    ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 3, 8, 8}});
    x = g.add(ir::OpKind::kGlobalAveragePool, "pool", {x});
    x = g.add(ir::OpKind::kFlatten, "flatten", {x});
    const std::vector<float> weights = {20, 0, 0, 0, 20, 0, 0, 0, 20};
    g.add_output(
        g.add(ir::OpKind::kGemm, "fc", {x, g.add_constant("w", ir::Tensor::of<float>({3, 3}, weights), true)}));
    save(std::move(g), "m.onnx");
    expect(0, "compile -m m.onnx -o m.octet");
  }
  Outcome evaluate(const std::string& more) const {
    return octet("evaluate -e spec.yaml -m m.octet --set data.val.format=imagenet_tfrecord " + more);
  }
};

TEST_F(ConvertImages, RecordsAreEvaluatedLikeTheirFolder) {
  expect(0, "convert images --format image_folder --path data --shards 2 -o records/val");
  save_brightest();
  EXPECT_THAT(evaluate("--set data.val.path=records").out, HasSubstr("top-1 100.00 %"));
  EXPECT_THAT(evaluate("--set 'data.val.path=records/val-*'").out, HasSubstr("top-1 100.00 %"));
  // Red and blue change places.
  EXPECT_THAT(evaluate("--set data.val.path=records --set data.color_order=bgr").out, HasSubstr("top-1 33.33 %"));
  const Outcome refused = evaluate("--set data.val.path=records --set data.val.label_offset=0");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("has labels up to 3"), HasSubstr("image/class/label is 1 to 3 in 18 images"),
                                 HasSubstr("set label_offset: 1")));
}

// Where no names help, the number of classes does.
TEST_F(ConvertImages, LabelsBeyondTheClassesAreAnErrorWithItsReason) {
  expect(0, "convert images --format image_folder --path data -o records/val");
  save_brightest();
  write("bare.yaml",
        "model: {num_classes: 3, input: [3, 8, 8]}\n"
        "data: {val: {format: imagenet_tfrecord, path: records, label_offset: 0}}\n");
  const Outcome refused = octet("evaluate -e bare.yaml -m m.octet");
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("holds 4 classes, the spec says model.num_classes: 3; image/class/label is 1 "
                              "to 3 in 18 images"),
                    HasSubstr("set label_offset: 1")));
}

TEST_F(ConvertImages, KeysOfFlagsAndOfSetGoTogether) {
  expect(0, "convert images --path data --set source.format=image_folder --set shuffle=false --shards 3 -o a/train");
  expect(0, "convert images --format image_folder --path data --shuffle false --shards 3 -o b/train");
  for (const char* shard : {"/train-00000-of-00003", "/train-00001-of-00003", "/train-00002-of-00003"}) {
    EXPECT_NE(read(std::string("a") + shard), "");
    EXPECT_EQ(read(std::string("a") + shard), read(std::string("b") + shard));
  }
}

TEST_F(ConvertImages, NothingIsReplacedUnaskedOrByItself) {
  const std::string convert = "convert images --format image_folder --path data --shards 3 -o r/train";
  expect(0, convert);
  const Outcome again = octet(convert);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("3 files of that name are there, as r/train-00000-of-00003; add --force"));
  const std::string first = read("r/train-00000-of-00003");
  const Outcome own = octet("convert images --format imagenet_tfrecord --path r --shards 2 -o r/train --force");
  EXPECT_EQ(own.code, 2);
  EXPECT_THAT(own.err, HasSubstr("is the same file as the input"));
  EXPECT_EQ(read("r/train-00000-of-00003"), first);
  expect(0, "convert images --format image_folder --path data --shards 2 -o r/train --force");
  EXPECT_TRUE(exists("r/train-00001-of-00002"));
  EXPECT_FALSE(exists("r/train-00000-of-00003"));
}

}  // namespace
